package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// errParent says that a process's parent could not be found out.
var errParent = errors.New("the parent process is not known")

// parentOf reads the parent's id from /proc. The command name before it may
// hold blanks and brackets: what counts follows the last closing one.
func parentOf(pid int) (int, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 {
		return 0, errParent
	}
	return strconv.Atoi(string(f[1]))
}
