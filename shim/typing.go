package shim

import "qshim/lockfile/fault"

// Type gives the agent b as if its user had typed it: into a running agent on a
// terminal, and only if its user has pressed no key since Arm. The tap says
// Typed, or Untyped: then nothing was, and nothing will be.
func (s *Session) Type(b []byte) { s.order(func() { s.orders.typed = append(s.orders.typed, b) }) }

// Arm begins to look whether the user presses a key. Reports of the terminal
// (focus, the mouse, answers) are none.
func (s *Session) Arm() {
	s.disturbed.Store(false)
	s.armed.Store(true)
}

// Disarm ends that: Type types nothing any more.
func (s *Session) Disarm() { s.armed.Store(false) }

// watchKeys looks at what the user's terminal sent, before the agent gets it.
func (s *Session) watchKeys(b []byte) {
	if s.armed.Load() && pressed(s.armedKeys.Decode(b)) > 0 {
		s.disturbed.Store(true)
	}
}

// typeNow runs on the loop's goroutine, like everything that writes keys: what
// the user types is either seen before, or comes behind.
func (s *Session) typeNow(b []byte) {
	if s.user == nil || s.ended || s.gone || s.held.Load() || !s.armed.Load() || s.disturbed.Load() {
		s.opt.Tap.event(Item{Kind: Untyped})
		return
	}
	fault.At("type")
	s.input.add(b)
	s.input.flush(s.inFD)
	fault.At("typed")
	s.opt.Tap.event(Item{Kind: Typed, Data: b})
}
