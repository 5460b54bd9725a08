// Package fault marks the steps at which a crash, a stall, a panic or a full
// disk must do no harm. In an ordinary build a mark does nothing and nothing can
// switch it on: the code that injects is only compiled with the build tag
// "faults", which cmd/internal/soak uses for the binary that it kills, and a
// test there looks into the ordinary one.
package fault
