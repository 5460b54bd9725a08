// Package soak holds the tests that treat qshim badly: shims killed at every
// step and at random, hundreds on one state directory, broken disks, hostile
// agents and other users. They drive the built binary (plain, and with the
// build tag "faults") on real terminals, with an agent that is a few lines of sh.
//
// The short forms run with go test; the long ones are switched on by the
// environment:
//
//	QSHIM_SOAK_KILLS=10000 go test ./cmd/internal/soak -run TestRandomKills -timeout 0 -v
//	QSHIM_SOAK_SHIMS=200   go test ./cmd/internal/soak -run TestManyShims -timeout 0 -v
//	QSHIM_SOAK_STEPS=all   go test ./cmd/internal/soak -run TestKilledAtEveryStep -timeout 0 -v
//	QSHIM_SOAK_NIGHT=1h    go test ./cmd/internal/soak -run TestNight -timeout 0 -v
//
// CONTRIBUTING.md has the figures.
package soak
