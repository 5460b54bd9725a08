package detect

import "bytes"

// HasStreams reports whether the profile has rules for what the agent writes
// into pipes. Without any there is nothing to watch on them.
func (p *Profile) HasStreams() bool {
	if p.source != nil && bytes.Contains(p.source(), []byte("\n[[detect.json]]")) {
		return true // said without parsing
	}
	b := p.rules()
	if len(b.jsons) > 0 {
		return true
	}
	for _, r := range b.rules {
		if r.mode.fits(Headless) {
			return true
		}
	}
	return false
}
