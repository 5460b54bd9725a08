package main

import "qshim/detect"

type src struct {
	Name string
	Data []byte
}

func parseOver(base, user src) (*detect.Profile, error) {
	return detect.ParseProfile(user.Name, append(append([]byte{}, user.Data...), base.Data...))
}
