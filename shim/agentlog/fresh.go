package agentlog

import (
	"bytes"
	"time"
)

// slack is how much older than the launch a new record's timestamp may be.
const slack = 2 * time.Second

var timestampKey = []byte(`"timestamp":"`)

// maxStamps bounds the timestamps that are looked at in one record.
const maxStamps = 64

// old reports whether a record says itself that it was written before since: it
// has timestamps and all of them are older, or it is a debug log's and begins
// with an older one. Sessions that are resumed or forked
// copy old records, errors included, into new files.
func old(line []byte, since time.Time) bool {
	if since.IsZero() {
		return false
	}
	if at, ok := headStamp(line); ok { // a log's record; its text may hold any times
		return at.Before(since.Add(-slack))
	}
	found := false
	for range maxStamps {
		i := bytes.Index(line, timestampKey)
		if i < 0 {
			break
		}
		line = line[i+len(timestampKey):]
		at, ok := stamp(line)
		if !ok {
			continue
		}
		if !at.Before(since.Add(-slack)) {
			return false
		}
		found = true
	}
	return found
}

// headStamp reads the time at which a record of a debug log says that it was
// written. One from before the launch is a log that somebody printed.
func headStamp(line []byte) (time.Time, bool) {
	if len(line) == 0 || line[0] != '2' || !recordHead().Match(line[:min(len(line), 64)]) {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, string(line[:bytes.IndexByte(line, ' ')]))
	return at, err == nil
}

// stamp reads the RFC 3339 time that ends at a quote.
func stamp(b []byte) (time.Time, bool) {
	end := bytes.IndexByte(b[:min(len(b), 40)], '"')
	if end < 0 {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, string(b[:end]))
	return at, err == nil
}
