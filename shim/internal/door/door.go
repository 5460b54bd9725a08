// Package door is the hidden second entry of the qshim binary. A process that
// qshim starts from its own executable with Role set never reaches main: it
// turns off here, in an init function, sets up the helper pair in the agent's
// new session, and then execs the agent:
//
//	H       job-control helper in a process group of its own, forked from it
//	Z       H's child, parked in the agent's process group
//
// Why two helpers: see DESIGN section 10 and proc.Start. The package imports
// syscall alone, so that the runtime initialises it before fmt and everything
// above it: H and Z are there for as long as the agent is, and have what it had
// touched by then.
package door

// Environment variables that carry the orders. They are never passed on.
const (
	Role = "_QSHIM_DOOR" // Agent
	Exec = "_QSHIM_EXEC" // Agent: the file to exec
	Back = "_QSHIM_BACK" // Agent: "1" when qshim is in the background, so the agent must start there too
	Kept = "_QSHIM_KEPT" // Agent: where the user's own descriptors 3 and 4 are meanwhile, as "5,6"; 0: there is none
)

// Agent is the value of Role.
const Agent = "agent"

// Descriptors that the Agent role finds open beside 0, 1 and 2.
const (
	FDControl = 3 // socket to qshim, handed on to H
	FDStatus  = 4 // pipe to qshim: Status messages; closed by a successful exec
)

// Name is what ps shows for H and Z: they must not look like the agent.
const Name = "qshim-jc"

// Orders that qshim sends to H, one byte each, then four bytes (a process
// group, little endian). H answers each with one byte when it is done.
// End of file instead of an order means that qshim is gone.
const (
	OrderForeground = 'F' // make the group the terminal's foreground group
	OrderBackground = 'B' // make H's own group the foreground group, so that the agent's is not
	OrderQuit       = 'Q' // the agent has ended: reap Z and exit
	OrderLen        = 5

	AnswerReady = 'R' // H's first word, unasked: Z is in its place
)

// Status messages are five bytes: a letter and four bytes, little endian.
const (
	StatusHelper = 'H' // the process id of H
	StatusFailed = 'E' // the agent could not be executed: errno
	StatusLen    = 5
)

// PutInt writes v into b as orders and status messages carry it.
func PutInt(b []byte, v int) {
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

// Int reads what PutInt wrote.
func Int(b []byte) int {
	return int(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
}
