// Package realagents runs the real agent CLIs offline: in a network namespace
// with only loopback up, each with a private HOME, a neutral project and a dummy
// key, against a fake provider inside the namespace, on a real PTY whose screen
// can be read. The tests of this package use it; command try does the same for
// a person's hands.
//
// The scenario tests start only with QSHIM_REAL_AGENTS=1 (the agent under
// qshim), all (also those in which an agent tries for minutes) or direct (the
// agent alone, to prove provider and harness), and only where
// testdata/agents/install has been run and a network namespace can be made.
// Otherwise they are skipped and say why.
//
//	test binary -> Isolate (itself again, in a namespace) -> fake provider on 127.0.0.1
//	            -> Prepare (HOME, project, environment) -> [qshim] agent on a PTY -> Screen rows
package realagents
