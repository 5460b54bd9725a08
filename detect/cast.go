package detect

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Cast is a terminal recording in the asciicast format, version 2 or 3.
type Cast struct {
	Cols, Rows int
	Start      time.Time // zero when the header has no timestamp
	Events     []CastEvent
}

// CastEvent is one event: Kind 'o' output, 'i' keys, 'r' a resize ("80x24"),
// 'm' a mark.
type CastEvent struct {
	At   time.Duration
	Kind byte
	Data string
}

const (
	maxCastLine   = 64 << 20
	maxCastEvents = 5 << 20
	maxCastTime   = 366 * 24 * time.Hour
)

// HasKeys reports whether the recording holds keys at all.
func (c *Cast) HasKeys() bool {
	for _, e := range c.Events {
		if e.Kind == 'i' {
			return true
		}
	}
	return false
}

type castHeader struct {
	Version   int     `json:"version"`
	Width     int     `json:"width"`
	Height    int     `json:"height"`
	Timestamp float64 `json:"timestamp"`
	Term      struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	} `json:"term"`
}

// ReadCast reads a recording. An error names the line.
func ReadCast(r io.Reader) (*Cast, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxCastLine)
	if !sc.Scan() {
		if err := sc.Err(); err != nil {
			return nil, err
		}
		return nil, errors.New("line 1: empty file, want an asciicast header")
	}
	var h castHeader
	if err := json.Unmarshal(sc.Bytes(), &h); err != nil || h.Version != 2 && h.Version != 3 {
		return nil, errors.New("line 1: no asciicast header of version 2 or 3")
	}
	c := &Cast{Cols: h.Width, Rows: h.Height}
	if h.Version == 3 {
		c.Cols, c.Rows = h.Term.Cols, h.Term.Rows
	}
	if h.Timestamp > 0 && h.Timestamp < 1e11 {
		c.Start = time.Unix(0, int64(h.Timestamp*1e3)*1e6).UTC()
	}
	last := time.Duration(0)
	for n := 2; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := castEvent(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if h.Version == 3 {
			e.At += last
		}
		e.At = min(max(e.At, last), maxCastTime) // a clock that runs backwards stands still
		last = e.At
		if c.Events = append(c.Events, e); len(c.Events) > maxCastEvents {
			return nil, errors.New("too many events")
		}
	}
	return c, sc.Err()
}

func castEvent(line string) (e CastEvent, err error) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(line), &raw); err != nil || len(raw) < 3 {
		return e, errors.New("want [seconds, kind, data]")
	}
	var at float64
	var kind string
	if json.Unmarshal(raw[0], &at) != nil || json.Unmarshal(raw[1], &kind) != nil || kind == "" || at != at || at < 0 || at > maxCastTime.Seconds() {
		return e, errors.New("want [seconds, kind, data]")
	}
	if json.Unmarshal(raw[2], &e.Data) != nil {
		e.Data = string(raw[2])
	}
	e.At, e.Kind = time.Duration(at*float64(time.Second)), kind[0]
	return e, nil
}

// castSize reads "80x24".
func castSize(s string) (cols, rows int, ok bool) {
	a, b, found := strings.Cut(s, "x")
	cols, err1 := strconv.Atoi(a)
	rows, err2 := strconv.Atoi(b)
	return cols, rows, found && err1 == nil && err2 == nil && cols > 0 && rows > 0
}
