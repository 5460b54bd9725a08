package agentlog

import (
	"bytes"
	"io"
	"os"
	"time"
)

// file follows one file: rotation, truncation, late appearance, lines that
// arrive in parts and lines without end.
type file struct {
	source     string
	base, rel  string
	path       string
	offset     int64
	joinRows   bool      // records may have several rows: see recordHead
	freshSince time.Time // records that are older by their own timestamps are dropped; zero: none
	atEnd      bool      // begin at the end of what exists when it is first opened
	emit       func(Item)
	now        func() time.Time

	f       *os.File
	part    []byte // a line without its newline yet
	record  []byte // joinRows: rows of a record that may go on
	midLine bool   // offset may be inside a line whose head is old
	tooLong bool   // the line in progress is longer than MaxLine
	skipped int
	missing bool // the path led to a file once and does not now
}

// maxCatchUp bounds how much of a large file is read back when it is not known
// where the old part of it ends.
const maxCatchUp = 8 << 20

// maxReopen bounds how often one read follows a rotation.
const maxReopen = 4

// read delivers what is new. A file that is missing or refused is tried again
// at the next read.
func (f *file) read() {
	for range maxReopen {
		if f.f == nil && !f.open() {
			return
		}
		f.rewindIfCut()
		f.drain()
		if f.f == nil || !f.replaced() {
			break
		}
		f.close()
		f.offset, f.midLine, f.atEnd = 0, false, false
	}
	f.report()
}

// open opens the file and finds out where to begin.
func (f *file) open() bool {
	file, err := openIn(f.base, f.rel)
	if err != nil {
		f.atEnd = false // whatever appears from now on is new
		return false
	}
	f.f, f.part, f.tooLong, f.missing = file, nil, false, false
	size := f.size()
	switch {
	case f.atEnd:
		f.offset = size
	case size-f.offset > maxCatchUp:
		f.offset = size - maxCatchUp
	}
	f.atEnd = false
	f.midLine = f.offset > 0 && !f.newlineBefore()
	return true
}

func (f *file) size() int64 {
	info, err := f.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (f *file) newlineBefore() bool {
	var b [1]byte
	_, err := f.f.ReadAt(b[:], f.offset-1)
	return err == nil && b[0] == '\n'
}

// rewindIfCut begins anew when the file has become shorter than what was read,
// or does not hold the end of the last line any more: it was cut and has grown.
func (f *file) rewindIfCut() {
	if f.size() < f.offset || f.offset > 0 && len(f.part) == 0 && !f.tooLong && !f.midLine && !f.newlineBefore() {
		f.offset, f.part, f.record, f.tooLong, f.midLine = 0, nil, nil, false, false
	}
}

// replaced reports whether another file has taken the path.
func (f *file) replaced() bool {
	now, err := os.Lstat(f.path)
	if f.missing = err != nil; f.missing {
		f.letGo()
		return false
	}
	if now.Mode()&os.ModeSymlink != 0 {
		if now, err = os.Stat(f.path); err != nil {
			return false
		}
	}
	open, err := f.f.Stat()
	return err == nil && !os.SameFile(now, open)
}

// letGo closes a file that was deleted. One that was only moved away is kept:
// its writer may add to it until it opens the next. A deleted file that is open
// would keep the kernel from telling that its directory has gone too.
func (f *file) letGo() {
	if links(f.f) == 0 {
		f.close()
		f.offset, f.midLine = 0, false
	}
}

// drain reads to the end of the file.
func (f *file) drain() {
	var buf [32 << 10]byte
	for {
		n, err := f.f.ReadAt(buf[:], f.offset)
		f.offset += int64(n)
		f.feed(buf[:n])
		if err == io.EOF || n == 0 {
			f.flush()
			return
		}
		if err != nil {
			f.close()
			return
		}
	}
}

// feed takes bytes and delivers the lines that they end.
func (f *file) feed(data []byte) {
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		f.lineEnd(data[:i])
		data = data[i+1:]
	}
	switch {
	case f.tooLong || f.midLine:
	case len(f.part)+len(data) > MaxLine:
		f.part, f.tooLong = nil, true
	default:
		f.part = append(f.part, data...)
	}
}

// lineEnd completes the line in progress with its last bytes.
func (f *file) lineEnd(tail []byte) {
	switch {
	case f.midLine:
		f.midLine = false
	case f.tooLong || len(f.part)+len(tail) > MaxLine:
		f.part, f.tooLong = nil, false
		f.skipped++
	default:
		f.line(append(f.part, tail...))
		f.part = nil
	}
}

// recordHead begins a record of the debug log of Gemini (0.61.0), or of Qwen
// Code (0.15.10) and Claude Code (2.1.332), without the first brackets. A record is written at once, so rows
// without a head belong to the record above if they came with it.
var recordHead = lazily(`^(?:\[\d{4}-\d\d-\d\dT[0-9:.]+Z\]|\d{4}-\d\d-\d\dT[0-9:.]+Z) \[[A-Z]+\] `)

// line takes one whole row.
func (f *file) line(row []byte) {
	row = bytes.TrimSuffix(row, []byte("\r"))
	if !f.joinRows {
		f.deliver(row)
		return
	}
	if recordHead().Match(row) {
		f.recordEnd()
	}
	if f.record != nil {
		row = append(append(f.record, ' '), row...)
	}
	if len(row) > MaxLine {
		f.record = nil
		f.skipped++
		return
	}
	f.record = row
}

// flush delivers a record of several rows when nothing more of it has been
// written. A row in progress is more of it, unless it looks like the next head.
func (f *file) flush() {
	if !f.tooLong && (len(f.part) == 0 || f.part[0] == '[' || f.part[0] == '2') {
		f.recordEnd()
	}
}

func (f *file) recordEnd() {
	if f.record != nil {
		f.deliver(f.record)
		f.record = nil
	}
}

// deliver emits one record, unless it is empty or old.
func (f *file) deliver(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 || old(line, f.since()) {
		return
	}
	f.emit(Item{Source: f.source, Path: f.path, Line: line})
}

// since is the instant before which records are old: freshSince, or now where
// the clock was set back behind it.
func (f *file) since() time.Time {
	if f.freshSince.IsZero() {
		return f.freshSince
	}
	if now := f.now().Round(0); now.Before(f.freshSince) { // what agents write knows the wall clock only
		return now
	}
	return f.freshSince
}

// report says how many lines were too long.
func (f *file) report() {
	if f.skipped > 0 {
		f.emit(Item{Source: f.source, Path: f.path, Skipped: f.skipped})
		f.skipped = 0
	}
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close() // only read from
		f.f = nil
	}
}
