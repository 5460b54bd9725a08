package shim

// Guard notices work on a launch that does not come back, as a session's own
// watchdog does: a disk that hangs, a deadlock of ours. It costs two additions a
// piece of work, and no timer while nothing is done.
type Guard struct{ heart heart }

// NewGuard calls stuck once, on a goroutine of its own, when a piece of work has
// not come back for 8 to 16 seconds.
func NewGuard(stuck func()) *Guard {
	g := &Guard{}
	g.heart.stuck = stuck
	return g
}

// Work begins a piece of work; done ends it. Of two at once, by which only a
// signal's goroutine can surprise a launch, one may go unwatched.
func (g *Guard) Work() (done func()) {
	g.heart.begin()
	return g.heart.rest
}

// LetGo gives the user's terminal back as it was, for whoever the launch is left
// to. The wait is over after that: nobody must go on with it.
func (w *LaunchWait) LetGo() {
	w.clear()
	if k, ok := w.Keys.(*keyboard); ok && k.foreground.Load() {
		_ = k.t.Restore() // hung up: nothing to restore
	}
}
