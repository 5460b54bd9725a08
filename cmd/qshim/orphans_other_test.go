//go:build !linux

package main

// Without /proc and subreapers nobody can look for what was left behind.

func adopt() {}

func orphans() []string { return nil }

func marked(string) []process { return nil }

func state(string) byte { return 0 }
