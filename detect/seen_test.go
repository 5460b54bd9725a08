package detect_test

import (
	"strings"
	"testing"
	"time"

	"qshim/detect"
)

// Screens and log records of agents that were seen live, with a provider of
// one's own: goose 1.34.0, Kimi Code 2.1.0 and pi 0.73.1.

const (
	kimiEdge  = " ╭──────────────────────────────────────────────────────────╮"
	kimiInput = kimiEdge + "\r\n │ >                                                        │\r\n ╰──────────────────────────────────────────────────────────╯\r\n kimi-k2 thinking  /proj"
	kimiError = "   Error: [provider.api_error] 429 You exceeded your current quota, please check your plan and billing\r\n details. For more information on this error, read the docs:\r\n https://platform.openai.com/docs/guides/error-codes/api-errors."
	kimiHint  = "   If this persists, run `/export-debug-zip` and share the file with us for diagnosis. Please don't share it\r\n publicly."
	kimiRetry = "  🌑 Retrying (3/10) · APIProviderRateLimitError · in 2s\r\n     429 · 429 Rate limit reached for gpt-5 in organization org-fake on requests per min (RPM): Limit\r\n     30000, Used 30000, Requested 21958. Visit https://platform.ope…"
)

func TestKimiSeen(t *testing.T) {
	begun := func(t *testing.T) *live {
		l := watch(t, "kimi", detect.Options{Cols: 110, Rows: 34})
		l.paint("", kimiInput)
		l.enter()
		l.paint(" ✨ go on", "", "  🌔 · Tip: ctrl-s to add guidance", kimiInput)
		l.wait(time.Second)
		l.want("while it works", "")
		return l
	}
	t.Run("retry", func(t *testing.T) {
		l := begun(t)
		l.paint(" ✨ go on", "", kimiRetry, kimiInput)
		l.wait(500 * time.Millisecond)
		l.want("its own retry", "retrying/strong")
	})
	t.Run("error", func(t *testing.T) {
		l := begun(t)
		l.paint(" ✨ go on", kimiError, kimiHint, "", kimiInput)
		l.wait(3 * time.Second)
		l.want("below the prompt", "credit/strong")
	})
	for name, rows := range map[string][]string{
		"retry recited":     {" ✨ go on", "", " ● It shows:", "", kimiRetry, "", kimiInput},
		"error recited":     {" ✨ go on", "", " ● It says:", "", kimiError, kimiHint, "", kimiInput},
		"error in a prompt": {" ✨ why:", kimiError, "", kimiInput},
	} {
		t.Run(name, func(t *testing.T) {
			l := begun(t)
			l.paint(rows...)
			l.wait(5 * time.Second)
			for _, got := range strings.Fields(l.got()) {
				if !strings.HasSuffix(got, "/weak") {
					t.Errorf("reported %s", got)
				}
			}
		})
	}
}

// The sentence alone could be the model's: only the log makes it goose's.
func TestGooseSeen(t *testing.T) {
	const (
		input   = "🪿 Enter to send · Ctrl+J newline"
		working = "◒  Igniting innovation ions...  (Ctrl+C to interrupt)"
		retry   = `WARN goose::providers::retry: Request failed, retrying (1/3): RateLimitExceeded { details: "Rate limit reached for gpt-5 in organization org-fake on requests per min (RPM): Limit 30000, Used 30000, Requested 3898. Please try again in 20.000s.", retry_delay: Some(20s) }`
		failed  = "ERROR goose::agents::agent: Error: Rate limit exceeded: The usage limit has been reached"
	)
	ended := []string{"🪿 go on", "", "Ran into this error: Rate limit exceeded: The usage limit has been reached.", "", "Please retry if you think this is a transient or recoverable error.", "  ⏱ 6.98s", "  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 0% 0/128k", input}
	for _, logged := range []bool{true, false} {
		l := watch(t, "goose", detect.Options{HasLog: logged})
		l.paint(input)
		l.wait(time.Second)
		for turn := range 2 {
			l.enter()
			l.paint("🪿 go on", "", working, working) // one is left over from keys that were typed
			l.wait(100 * time.Millisecond)
			if l.rep.Activity != detect.Busy {
				t.Errorf("turn %d: activity %v while it works", turn, l.rep.Activity)
			}
			if logged {
				l.take(l.w.Log(l.now, []byte(retry)))
				l.want("its hidden try", "retrying/strong")
				l.take(l.w.Log(l.now, []byte(failed)))
				l.want("its failed turn", "window/strong")
			}
			l.paint(append([]string{working}, ended...)...)
			l.wait(5 * time.Second)
			if got := l.got(); logged && got != "" || !logged && got != "window/weak" && got != "" {
				t.Errorf("turn %d, logged %v: the screen said %q", turn, logged, got)
			}
			if l.rep = l.w.Peek(l.now); l.rep.Activity != detect.Idle || !l.rep.ComposerEmpty {
				t.Errorf("turn %d: activity %v, composer empty %v at its end", turn, l.rep.Activity, l.rep.ComposerEmpty)
			}
		}
	}
}

func TestPiSeen(t *testing.T) {
	const edge = "────────────────────────────────────────"
	l := watch(t, "pi", detect.Options{HasLog: true})
	l.paint(" pi v0.73.1", "", edge, "", edge, "/proj", "0.0%/128k (auto)")
	l.wait(time.Second)
	if r := l.w.Peek(l.now); !r.ComposerEmpty {
		t.Error("its empty input is not seen")
	}
	l.enter()
	l.paint(" go on", "", " ⠇ Working...", "", edge, "", edge, "/proj", "0.0%/128k (auto)")
	l.wait(100 * time.Millisecond)
	if l.rep.Activity != detect.Busy {
		t.Errorf("activity %v while it works", l.rep.Activity)
	}
	l.take(l.w.Log(l.now, []byte(`{"type":"message","timestamp":"2026-11-30T09:36:47.280Z","message":{"role":"assistant","stopReason":"error","errorMessage":"429 Rate limit reached for gpt-5 on requests per min (RPM)"}}`)))
	l.want("its session's file", "rate/certain")
	l.paint(" go on", "", " Error: 429 Rate limit reached for gpt-5", "", " ⠙ Retrying (2/3) in 1s... (escape to cancel)", "", edge, "half a prompt", edge, "/proj", "0.0%/128k (auto)")
	l.wait(500 * time.Millisecond)
	l.want("its retry", "retrying/strong")
	if r := l.w.Peek(l.now); r.ComposerEmpty {
		t.Error("a half-typed prompt is taken for an empty input")
	}
}
