package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var zero time.Time

// TestKilledAtEveryStep kills a shim with SIGKILL before each step of a whole
// life. Whatever the step, siblings find a whole ledger, are not locked out,
// and one Recover leaves nothing of it but what it had finished.
func TestKilledAtEveryStep(t *testing.T) {
	steps, err := scenario(filepath.Join(t.TempDir(), "dry"), func(int, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 40 || !slices.Contains(steps, "rotate events") || !slices.Contains(steps, "decide intent") {
		t.Fatalf("the scenario is not what it was: %q", steps)
	}
	seen := map[int]bool{}
	for i, name := range steps {
		t.Run(fmt.Sprintf("%02d %s", i, strings.ReplaceAll(name, "/", "_")), func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			dieAt(t, i, place)
			d := openWith(t, place, Options{maxEvents: 400})
			unlocked := whole(t, d, mustRead(t, d), false)
			continued := 0
			before := mustRead(t, d)
			if s, ok := before.Sessions["victim"]; ok && s.Alive {
				t.Error("a killed session is alive")
			}
			if _, err := d.Recover(func(Stopped) error { continued++; return nil }); err != nil {
				t.Error(err)
			}
			if _, was := before.Sessions["victim"]; was != (continued == 1) {
				t.Errorf("session there: %v, continued %d", was, continued)
			}
			l := mustUpdate(t, d, step)
			if n := whole(t, d, l, true); n != unlocked+1 {
				t.Errorf("a reader saw %d updates, after one more there are %d", unlocked, n)
			}
			seen[unlocked] = true
			if _, err := d.Salt(); err != nil {
				t.Error(err)
			}
			if err := d.sweep(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, place)
		})
	}
	if len(seen) != 4 {
		t.Errorf("updates that survived: %v; the kills did not hit every state", seen)
	}
}

// nothingLeft checks for files that no sibling needs.
func nothingLeft(t *testing.T, place string) {
	t.Helper()
	err := filepath.WalkDir(place, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		room := filepath.Base(filepath.Dir(path))
		if room == sessionRoom || strings.HasPrefix(name, tempPrefix) || strings.Contains(name, badInfix) {
			t.Errorf("left behind: %s", path)
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFailedAtEveryStep is the disk that fails there instead. An update either
// fails and has changed nothing, or says that it will be completed, and is.
func TestFailedAtEveryStep(t *testing.T) {
	steps, err := scenario(filepath.Join(t.TempDir(), "dry"), func(int, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range steps {
		t.Run(fmt.Sprintf("%02d %s", i, strings.ReplaceAll(name, "/", "_")), func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "state")
			_, err := scenario(place, func(n int, _ string) error {
				if n == i {
					return fmt.Errorf("injected: %w", syscall.ENOSPC)
				}
				return nil
			})
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("the failure was swallowed: %v", err)
			}
			var part partlyError
			d := openWith(t, place, Options{maxEvents: 400})
			n := whole(t, d, mustRead(t, d), !errors.As(err, &part))
			if n != 3 && n != 2 {
				t.Errorf("%d of 3 updates are there after one failed", n)
			}
			if m := whole(t, d, mustUpdate(t, d, step), true); m != n+1 {
				t.Errorf("%d, then %d", n, m)
			}
			if _, err := d.Recover(func(Stopped) error { return nil }); err != nil {
				t.Error(err)
			}
			if err := d.sweep(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, place)
		})
	}
}
