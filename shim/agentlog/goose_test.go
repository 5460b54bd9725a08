package agentlog

import (
	"path/filepath"
	"testing"
)

// The records of goose 1.34.0, shortened.
const (
	gooseBegun = `{"timestamp":"2026-11-29T16:45:01.5Z","level":"INFO","fields":{"message":"CLI command executed","command":"session"},"target":"goose_cli::cli"}` + "\n"
	gooseRetry = `{"timestamp":"2026-11-29T16:45:06.4Z","level":"WARN","fields":{"message":"Request failed, retrying (1/3): RateLimitExceeded { details: \"x\", retry_delay: Some(20s) }"},"target":"goose::providers::retry","span":{"name":"stream_response_from_provider"},"spans":[{"name":"reply_stream"},{"name":"stream_response_from_provider"}]}` + "\n"
	gooseTitle = `{"timestamp":"2026-11-29T16:45:06.4Z","level":"WARN","fields":{"message":"Request failed, retrying (1/3): ServerError(\"x\")"},"target":"goose::providers::retry","span":{"name":"complete"},"spans":[{"name":"complete"}]}` + "\n"
	gooseError = `{"timestamp":"2026-11-29T16:45:12.7Z","level":"ERROR","fields":{"message":"Error: Rate limit\n exceeded: x"},"target":"goose::agents::agent","spans":[{"name":"reply_stream"}]}` + "\n"

	gooseRetried = `WARN goose::providers::retry: Request failed, retrying (1/3): RateLimitExceeded { details: "x", retry_delay: Some(20s) }`
	gooseFailed  = `ERROR goose::agents::agent: Error: Rate limit exceeded: x`
)

// gooseBench: pid 10 is the launcher, 11 the agent, 20 a sibling.
func gooseBench(t *testing.T, old ...string) (*bench, func(name string) string, *fakeProcs) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := func(name string) string { return filepath.Join(home, "logs", "cli", "2026-11-29", name) }
	for _, name := range old {
		write(t, log(name), gooseBegun+gooseError)
	}
	procs := &fakeProcs{parents: map[int]int{10: 1, 11: 10, 20: 1}, open: map[int][]string{}}
	return newBench(t, Spec{Kind: Goose, Home: home, Cwd: "/proj", PID: 10, Procs: procs}), log, procs
}

func TestGoose(t *testing.T) {
	b, log, procs := gooseBench(t, "20261129_160000.log")
	b.expect("")
	write(t, log("20261129_164501.log"), gooseBegun+gooseTitle+gooseRetry)
	write(t, log("20261129_164502.log"), gooseBegun+gooseError) // a sibling's
	procs.open[20] = []string{log("20261129_164502.log")}
	b.expect("")
	procs.open[11] = []string{"/dev/null", log("20261129_164501.log")}
	b.expect(gooseRetried)
	write(t, log("20261129_164501.log"), gooseError+"not JSON\n"+gooseTitle)
	b.expect(gooseFailed)
}

func TestGooseWithoutOpenFiles(t *testing.T) {
	b, log, procs := gooseBench(t, "20261129_160000.log")
	procs.blind = true
	b.expect("")
	write(t, log("20261129_164501.log"), gooseBegun+gooseRetry)
	b.expect(gooseRetried)
	write(t, log("20261129_164502.log"), gooseBegun+gooseError) // begun later: a sibling's
	b.expect("")
}

// Two that start in the same second write into the same file.
func TestGooseShared(t *testing.T) {
	b, log, procs := gooseBench(t)
	procs.open[11] = []string{log("20261129_164501.log")}
	write(t, log("20261129_164501.log"), gooseBegun+gooseBegun+gooseRetry+gooseError)
	b.expect("")
}

func TestGooseRefusesOtherNames(t *testing.T) {
	b, log, procs := gooseBench(t)
	home := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(log("x")))))
	procs.open[11] = []string{filepath.Join(home, "logs", "llm_request.0.jsonl"), filepath.Join(home, "logs", "cli", "x.log"), "/logs/cli/2026-11-29/x.log"}
	for _, path := range procs.open[11][:2] {
		write(t, path, gooseError)
	}
	b.expect("")
}

func FuzzGooseLine(f *testing.F) {
	for _, s := range []string{gooseBegun, gooseRetry, gooseTitle, gooseError, "", "{", `{"spans":[null],"level":"WARN"}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, c := range gooseLine(record) {
			if c == '\n' || c == '\r' {
				t.Errorf("%q holds a line break", gooseLine(record))
			}
		}
	})
}
