//go:build linux

package shim

import (
	"testing"
	"time"
)

// More does nothing: whoever plays this user sends one key after another.
func (k *fakeKeyboard) More() {}

// countingKeyboard counts how many keys were asked for.
type countingKeyboard struct {
	*fakeKeyboard
	more int
}

func (k *countingKeyboard) More() { k.more++ }

// Behind the Enter that launches no key is asked for: it is the agent's.
func TestLaunchAsksForKeysOneByOne(t *testing.T) {
	launchBubble(t, true, func(t *testing.T, b *launchBench) {
		k := &countingKeyboard{fakeKeyboard: b.kbd}
		b.w.Keys = k
		b.hit(rateHit(5 * time.Minute))
		b.start()
		b.waits()
		for _, key := range "xy\r" {
			b.kbd.keys <- byte(key)
		}
		b.ends(Launch, 0, time.Second)
		if k.more != 2 {
			t.Errorf("asked for %d keys more, want 2", k.more)
		}
	})
}
