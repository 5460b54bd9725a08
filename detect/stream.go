package detect

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"qshim/detect/finding"
)

const (
	// maxLine bounds what is kept of one line; a longer one is skipped to its
	// end. Real records with whole file contents inside reach some MB, records
	// that say something about limits stay below 64 KB (measured).
	maxLine = 1 << 20
	// maxWindow is how many text lines back a headless error can reach.
	maxWindow = 60
	// maxPretty bounds a JSON object printed over several lines.
	maxPretty = 64 << 10
)

const logPipe = 2

// pipe is one line-wise source: stdout, stderr or the agent's log.
type pipe struct {
	desk   desk
	part   []byte // the line that has not ended yet
	skip   bool   // it is longer than maxLine
	window []line
	gone   uint64 // lines that have left the window
	blocks []block
	pretty []byte // a JSON object over several lines
	depth  bool
	text   bool // its first line was no JSON: what looks like JSON later is text
	json   bool // its first line was JSON
	hot    bool
}

// exhausted is a window that the agent's log says is used up.
type exhausted struct {
	reset time.Time
}

// Stream takes what a headless agent writes to a pipe. Lines may be of any
// length; memory is bounded.
func (w *Watcher) Stream(now time.Time, out Stream, b []byte) Report {
	now = w.clock(now)
	w.ready()
	p := &w.pipes[out&1]
	p.feed(b, func(l []byte) { w.streamLine(now, p, out, l) })
	w.readPipe(now, p, Headless)
	return w.take(now)
}

// Lost says that bytes of a pipe were left out: the line in progress and what
// comes of the next one before its end are no lines.
func (w *Watcher) Lost(out Stream) {
	p := &w.pipes[out&1]
	p.skip, p.part = true, p.part[:0]
}

// feed cuts bytes into lines.
func (p *pipe) feed(b []byte, each func([]byte)) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		end := i >= 0
		chunk := b
		if end {
			chunk, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(p.part)+len(chunk) > maxLine {
			p.skip, p.part = true, p.part[:0]
		}
		if !p.skip {
			p.part = append(p.part, chunk...)
		}
		if !end {
			return
		}
		if !p.skip {
			each(p.part)
		}
		p.skip, p.part = false, p.part[:0]
	}
}

// flush hands out a last line that had no end.
func (p *pipe) flush(each func([]byte)) {
	if len(p.part) > 0 && !p.skip {
		each(p.part)
	}
	p.part = p.part[:0]
}

// escapes are the control sequences that a headless agent writes to a terminal:
// colours, modes, titles.
var escapes = ownPattern("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\a\x1b]*(?:\a|\x1b\\\\)|[()][0-9A-Za-z]|[=>78cDEHMNO])")

func (w *Watcher) streamLine(now time.Time, p *pipe, out Stream, l []byte) {
	from := [...]string{Stdout: "stdout", Stderr: "stderr", onTerminal: ""}[out]
	if bytes.IndexByte(l, 0x1b) >= 0 {
		l = escapes.regexp().ReplaceAll(l, nil)
	}
	trimmed := bytes.TrimSpace(l)
	if len(trimmed) == 0 {
		p.push(w.p, "", Headless)
		return
	}
	isJSON := trimmed[0] == '{' || bytes.HasPrefix(trimmed, []byte("[{"))
	if !p.text && !p.json {
		p.json, p.text = isJSON, !isJSON
	}
	// In a stream of JSON every line is a record; in a text answer a line of
	// JSON is only text that a model or a tool wrote.
	if isJSON && (!p.text || w.o.Records || out != Stdout || w.o.Lenient) {
		if ds, ok := decodeAll(trimmed); ok {
			for _, d := range ds {
				w.record(now, d, from, string(trimmed))
			}
			return
		}
	}
	if out != Stdout || p.json || w.o.Lenient {
		w.prettyLine(now, p, from, l)
	}
	text := strings.TrimRight(string(l), "\r")
	text = text[strings.LastIndexByte(text, '\r')+1:] // a row that was drawn over
	p.push(w.p, text, Headless)
}

// prettyLine collects a JSON object that is printed over several lines.
func (w *Watcher) prettyLine(now time.Time, p *pipe, from string, l []byte) {
	switch s := bytes.TrimRight(l, " \r"); {
	case len(s) == 1 && s[0] == '{':
		p.pretty, p.depth = append(p.pretty[:0], l...), true
	case !p.depth:
	case len(p.pretty)+len(l) > maxPretty:
		p.pretty, p.depth = p.pretty[:0], false
	default:
		p.pretty = append(append(p.pretty, '\n'), l...)
		if len(s) == 1 && s[0] == '}' {
			p.depth = false
			if d, ok := decode(p.pretty); ok {
				w.record(now, d, from, string(p.pretty))
			}
		}
	}
}

// push adds a text line to the window.
func (p *pipe) push(prof *book, text string, m Mode) {
	if len(text) > 8<<10 {
		text = strings.ToValidUTF8(text[:8<<10], "")
	}
	l := prof.classify(text, m, false)
	p.hot = p.hot || l.hot || len(p.desk.wait) > 0
	if p.desk.own && l.start != 0 {
		// The head of a record: what stands above has been read.
		p.gone += uint64(len(p.window))
		p.window = p.window[:0]
	}
	p.window = append(p.window, l)
	if n := len(p.window); n > 2*maxWindow {
		p.gone += uint64(n - maxWindow)
		p.window = append(p.window[:0], p.window[n-maxWindow:]...)
	}
}

// readPipe looks at the text window if something in it could matter.
func (w *Watcher) readPipe(now time.Time, p *pipe, m Mode) {
	if !p.hot {
		return
	}
	p.hot = false
	p.blocks = w.p.blocks(p.window, p.blocks)
	cs := w.p.candidates(p.blocks, p.window, m, w.o.Lenient, now, w.o.Zone)
	for i := range cs {
		// A retry's counter begins anew after its last try, and a log says
		// everything once: the same words are another try.
		if c := &cs[i]; c.rule.each || p.desk.own {
			c.try, c.key = true, c.rule.name+"#"+strconv.FormatUint(p.gone+uint64(c.block.from), 10)
		}
	}
	w.weigh(now, &p.desk, cs)
}

func (w *Watcher) rereadPipes(now time.Time) {
	for i := range w.pipes {
		p := &w.pipes[i]
		if len(p.desk.wait) == 0 {
			continue
		}
		p.hot = true
		m := Headless
		if i == logPipe {
			m = logText
		}
		w.readPipe(now, p, m)
	}
}

// Log takes one line of the agent's own log, which is the surest source:
// structured, and never painted again.
func (w *Watcher) Log(now time.Time, l []byte) Report {
	now = w.clock(now)
	l = bytes.TrimRight(l, " \t\r\n") // an indent is part of a row: it may be quoted
	if len(l) > maxLine {
		return w.take(now)
	}
	w.ready()
	w.sig.logged = true
	p := &w.pipes[logPipe]
	if d, ok := w.logRecord(now, bytes.TrimSpace(l)); ok {
		w.record(now, d, "log", string(l))
	} else {
		p.push(w.p, string(l), logText)
		w.readPipe(now, p, logText)
		w.logLineDrift(now, p, string(l))
	}
	w.scan(now, true)
	return w.take(now)
}

// logRecord decodes a JSON line that is newer than the session.
func (w *Watcher) logRecord(now time.Time, l []byte) (doc, bool) {
	if len(l) == 0 || l[0] != '{' {
		return nil, false
	}
	d, ok := decode(l)
	if !ok {
		return nil, false
	}
	if t := d.epoch("timestamp"); !t.IsZero() && !w.o.Started.IsZero() && t.Before(w.news(now).Add(-2*time.Second)) {
		return doc{}, true
	}
	return d, true
}

// record asks the structured rules about one object.
func (w *Watcher) record(now time.Time, d doc, from, raw string) {
	w.consumed(d, from)
	for _, r := range w.p.jsons {
		if !r.fits(d, from) {
			continue
		}
		w.effect(now, r, d)
		if r.effect != "" && r.class == "" && r.otherwise == "" {
			continue
		}
		f, ok := r.read(d, now, w.o.Zone)
		if !ok {
			w.recordDrift(r, d, from)
			return
		}
		rows := d.says(r.text, r.code)
		if rows == nil {
			rows = []string{raw}
		}
		f.Rows = escapeRows(rows)
		if from != "log" {
			w.refused = f.Class.IsLimit()
		}
		if from == "log" && f.Class != finding.Warning {
			w.sig.logAt, w.sig.logClass = now, f.Class
		}
		w.report(f, r.name, r.delayMS != "" || r.attempt != "")
		return
	}
}

// effect takes what a record tells besides a finding.
func (w *Watcher) effect(now time.Time, r *jsonRule, d doc) {
	if r.model != "" {
		if m := d.str(r.model); m != "" && m != "<synthetic>" {
			w.sig.model = m
		}
	}
	switch r.effect {
	case "success":
		w.rep.Success, w.refused = true, false
		w.answers()
		w.endRetry()
	case "answer":
		w.refused = false
		w.answers()
		w.endRetry()
	case "turn-began":
		w.setActivity(now, Busy)
	case "turn-ended":
		w.setActivity(now, Idle)
	case "windows":
		w.windows(d, r.reset)
	}
}

// windows remembers the exact reset of every window that is used up: the
// screen shows it cut to the minute, up to 59 s early (measured codex 0.171.0).
func (w *Watcher) windows(d doc, path string) {
	w.known = w.known[:0]
	for _, k := range []string{"primary", "secondary"} {
		used, ok := d.num(path + "." + k + ".used_percent")
		t := d.epoch(path + "." + k + ".resets_at")
		if ok && used >= 100 && !t.IsZero() {
			w.known = append(w.known, exhausted{reset: t})
		}
	}
}

// refine replaces a clock time by the exact instant that the log gave.
func (w *Watcher) refine(f *finding.Finding) {
	if f.Class != finding.Window || f.ResetSource == finding.Epoch {
		return
	}
	for _, k := range w.known {
		only := f.Reset.IsZero() && len(w.known) == 1 && believable(k.reset, f.At, windowOf(strings.Join(f.Rows, " ")))
		gap := k.reset.Sub(f.Reset)
		if only || !f.Reset.IsZero() && gap >= -time.Minute && gap < 2*time.Minute {
			f.Reset, f.ResetSource, f.Precision = k.reset, finding.Epoch, 0
			return
		}
	}
}

// Exit says how the agent ended. A headless agent's last error row is its own
// only if it failed.
func (w *Watcher) Exit(now time.Time, code int) Report {
	now = w.clock(now)
	w.exited, w.failed = true, Failed(code)
	if w.failed {
		w.scan(now, true)
	}
	for i := range w.pipes[:logPipe] {
		if w.p == nil {
			break // nothing has been said
		}
		p := &w.pipes[i]
		p.flush(func(l []byte) { w.streamLine(now, p, Stream(i), l) })
		if !w.failed {
			p.desk.wait = nil
			continue
		}
		p.hot = true
		w.readPipe(now, p, Headless)
	}
	if w.failed {
		w.exitDrift(now)
	}
	if w.o.Mode == Headless && code == 0 && !w.refused {
		w.rep.Success = true
	}
	w.endRetry()
	w.setActivity(now, Idle)
	return w.take(now)
}

// Failed reports whether an exit code says that the agent gave up, not that
// somebody ended it. Gemini's own codes reach above 128 (an HTTP status cut to
// a byte, measured 0.61.0), so only the signals that people send are told apart.
func Failed(code int) bool {
	switch code - 128 {
	case 1, 2, 3, 9, 13, 15: // HUP INT QUIT KILL PIPE TERM
		return false
	}
	return code != 0
}
