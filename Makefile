# Short names for what people and CI do here. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help build generate test race fuzz bench agents real cross check demo

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./qshim
	go build -o qshim ./cmd/qshim

generate: ## compile the agents' launch parts and the defaults in anew
	go generate ./policies/...

test: ## all tests that need no agent installed
	go test ./...

race: ## the same under the race detector
	go test -race ./...

fuzz: ## every fuzz target for 20 s each
	@go list ./... | while read -r p; do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 20s -parallel 2 $$p || exit 1; \
	  done; \
	done

bench: build ## qshim beside a bare loop, script and tmux: start, keys, output, memory (5 min)
	go run ./cmd/internal/bench ./qshim

agents: ## install the pinned real agent CLIs outside the clone; prints where
	sh testdata/agents/install

real: ## tests with the real agent CLIs (after `make agents`)
	QSHIM_REAL_AGENTS=1 go test -count=1 -timeout 15m ./cmd/internal/realagents/...

cross: ## build and vet for macOS on Apple silicon
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/qshim
	GOOS=darwin GOARCH=arm64 go vet ./...

check: ## formatting and vet
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...

demo: ## see it work without an agent or an account
	go run ./cmd/qshim demo
