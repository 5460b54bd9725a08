// Package fakeprovider is a model provider on loopback that refuses like the
// real ones. It speaks enough of Anthropic's Messages, OpenAI's Responses and Chat
// Completions, the Gemini API and Google's Code Assist for Claude Code 2.1.332,
// Codex 0.171.0, Gemini CLI 0.61.0, OpenCode 1.18.33 and Qwen Code 0.15.10 to
// finish a turn, so that qshim can be shown and tested with no account and no
// network.
//
//	client -> route (which provider, which path) -> account (hash of the key)
//	       -> scenario (a refusal set from outside) -> limits (token buckets)
//	       -> reply (streamed at a set pace) or refusal (in the provider's shape)
//
// # Accounts
//
// Requests are told apart by the credential that they carry: each distinct key
// or token is an account of its own with its own buckets and counts. An account
// is named by 12 hex digits of the SHA-256 of its credential (see [Account]), so
// that no key stands in a count or a log. Codex's ChatGPT account header, where
// sent, is the credential.
//
// # What can be set
//
// Three things, each for one account, for one provider, or for all: a
// [Scenario] (how to refuse), [tier.Limits] (token buckets) and a [Reply] (what to
// say and how slowly). The most specific setting wins. Set them with
// [Server.Apply], or from another process:
//
//	curl -d '{"provider":"anthropic","scenario":{"kind":"rate","retry_after_s":30,"for_s":30}}' http://127.0.0.1:PORT/_control
//	curl http://127.0.0.1:PORT/_control/counts
//	curl -X POST http://127.0.0.1:PORT/_control/reset
//
// A prompt can also set its own pace, so that several sessions of one account
// may behave differently: words like hold=90s, gap=1s, chunks=20, in=5000 or
// out=800 in the last user message override the [Reply].
//
// The texts of the refusals were copied from recordings of the real clients and
// from public issue reports; where the real body is not known the comment says so.
package fakeprovider
