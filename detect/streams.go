package detect

// HasStreams reports whether the profile has rules for what the agent writes
// into pipes. Without any there is nothing to watch on them.
func (p *Profile) HasStreams() bool {
	if len(p.jsons) > 0 {
		return true
	}
	for _, r := range p.rules {
		if r.mode.fits(Headless) {
			return true
		}
	}
	return false
}
