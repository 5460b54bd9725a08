// Package painter is a small scripted agent for the demo and for tests: it does
// a task of some calls to an Anthropic-shaped provider and paints it as Claude
// Code 2.1.332 does, on the alternate screen and by changed cells only, so that
// qshim's real rules for Claude Code read it.
//
//	keys, signals, sizes \
//	client's updates ------> model -> rows -> canvas -> changed cells -> terminal
//	spinner's tick ------- /
//
// Like the real one it retries by itself (0.5 s doubled up to 32 s, a stated
// retry-after as the floor, ten times), then shows the final row with the hint
// in its input line; it shows no reason before the third attempt; it has the
// real one's titles; it draws everything anew when it is continued after a stop;
// and headless (-p) it prints the answer or the error and exits 0 or 1.
package painter
