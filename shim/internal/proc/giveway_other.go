//go:build !linux

package proc

// GiveWay does nothing where schedulers have no such thing.
func GiveWay() {}
