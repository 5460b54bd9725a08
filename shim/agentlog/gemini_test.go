package agentlog

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	startupRecord = "[2026-11-29T16:45:08.055Z] [DEBUG] [STARTUP] StartupProfiler.flush() called with 10 phases\n"
	// A record of Gemini CLI 0.61.0 as it stands in the file.
	attempt = "[2026-11-29T16:46:28.150Z] [WARN] Attempt 2 failed: You exceeded your current quota. \n" +
		"* Quota exceeded for metric: x, limit: 5, model: gemini-2.5-pro\nPlease retry in 5s.\n" +
		"Suggested retry after 5s.. Retrying after 10276ms...\n"
)

func chat(home, name string) string {
	return filepath.Join(home, "tmp", "proj", "chats", "session-2026-11-29T16-45-"+name+".jsonl")
}

func chatHead(start string) string {
	return `{"sessionId":"s","startTime":"` + start + `","lastUpdated":"` + start + `","kind":"main"}` + "\n"
}

func geminiBench(t *testing.T, debug bool) (b *bench, home, log string) {
	t.Helper()
	home, log = t.TempDir(), filepath.Join(t.TempDir(), "gemini-debug.log")
	s := Spec{Kind: Gemini, Home: home, Cwd: "/proj"}
	if debug {
		s.Files = []string{log}
	}
	return newBench(t, s), home, log
}

func TestGeminiRecordsOfSeveralRows(t *testing.T) {
	b, _, log := geminiBench(t, true)
	write(t, log, attempt)
	want := strings.ReplaceAll(strings.TrimSuffix(attempt, "\n"), "\n", " ")
	b.expect(want)
	write(t, log, attempt+attempt[:40])
	b.expect(want)
	write(t, log, attempt[40:])
	b.expect(want)
	b.expect("")
}

func TestGeminiChatOfOurProcess(t *testing.T) {
	b, home, log := geminiBench(t, true)
	write(t, filepath.Join(home, "projects.json"), `{"projects":{"/other":"other","/proj":"proj"}}`)
	write(t, chat(home, "sibling1"), chatHead("2026-11-29T16:45:03.000Z"))
	write(t, chat(home, "ours0000"), chatHead("2026-11-29T16:45:08.023Z"))
	write(t, chat(home, "sibling2"), chatHead("2026-11-29T16:45:13.000Z"))
	b.expect("") // nothing tells them apart yet
	write(t, log, startupRecord)
	b.step()
	write(t, chat(home, "sibling1"), "s1\n")
	write(t, chat(home, "ours0000"), "o1\n")
	if got := b.step(); !strings.HasSuffix(got, "o1") || strings.Contains(got, "s1") {
		t.Errorf("got %q", got)
	}
}

func TestGeminiChatThatCouldBeAnothers(t *testing.T) {
	b, home, log := geminiBench(t, true)
	write(t, filepath.Join(home, "projects.json"), `{"projects":{"/proj":"proj"}}`)
	write(t, chat(home, "sibling1"), chatHead("2026-11-29T16:45:07.000Z"))
	write(t, chat(home, "ours0000"), chatHead("2026-11-29T16:45:08.023Z"))
	write(t, log, startupRecord)
	b.step()
	write(t, chat(home, "ours0000"), "o1\n")
	b.expect("")
}

func TestGeminiChatWithoutDebugLog(t *testing.T) {
	b, home, _ := geminiBench(t, false)
	write(t, chat(home, "resumed0"), chatHead("2026-11-28T16:45:08.023Z"))
	write(t, chat(home, "ours0000"), chatHead("2026-11-29T16:45:08.023Z"))
	b.expect("")
	write(t, filepath.Join(home, "projects.json"), `{"projects":{"/proj":"proj"}}`)
	b.expect(strings.TrimSpace(chatHead("2026-11-29T16:45:08.023Z")))
}

func TestGeminiProjectNameStaysInside(t *testing.T) {
	b, home, _ := geminiBench(t, false)
	write(t, filepath.Join(home, "projects.json"), `{"projects":{"/proj":"../.."}}`)
	b.expect("")
	if b.find.(*gemini).project != "" {
		t.Error("a project outside was taken")
	}
}
