package detect

import (
	"slices"
	"strings"
	"testing"
)

func TestMaskKeys(t *testing.T) {
	for _, c := range []struct{ rows, want []string }{
		{[]string{"● API Error: 401 Incorrect API key provided: sk-proj-Ab3dEf9hIjKl. You can find"}, []string{"● API Error: 401 Incorrect API key provided: sk-… You can find"}},
		{[]string{"Authorization: Bearer abcDEF123456789"}, []string{"Authorization: Bearer …"}},
		{[]string{`{"x-api-key":"0123abcd4567ef"} 429`}, []string{`{"x-api-key":"…"} 429`}},
		{[]string{"GET https://x.test/v1?key=AIzaSyA1234567890abcd&alt=sse 429"}, []string{"GET https://x.test/v1?key=AIza…&alt=sse 429"}},
		{[]string{"429 for ANTHROPIC_AUTH_TOKEN=hunter2-EEEE."}, []string{"429 for ANTHROPIC_AUTH_TOKEN=…"}},
		{[]string{"  │ key sk-ant-api03-AAAAsecret", "AAAA-rest99 is over its limit"}, []string{"  │ key sk-…", "… is over its limit"}},
		{[]string{"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF-1"}, []string{"token eyJ…"}},
		// What is no key stays: it is what a person reads.
		{[]string{"Rate limit reached for gpt-5.1-codex in organization org-1234 on tokens per min (TPM): Limit 30000, Used 29000"}, nil},
		{[]string{"max_tokens: 200000 · input_tokens=123456789012 · request id: req_011CSHoEeqs5C35K2UUqR7Fy"}, nil},
		{[]string{"You've hit your session limit · resets 3pm (America/Los_Angeles)"}, nil},
		{[]string{"API key not valid. Please pass a valid API key.", "invalid x-api-key", "the token bucket is empty"}, nil},
		{[]string{"key: generate_content_free_tier_requests, limit: 20, model: gemini-3-flash-preview-09-2025"}, nil},
		{[]string{"sk-learn and task-force are words"}, nil},
	} {
		got := slices.Clone(c.rows)
		maskKeys(got)
		want := c.want
		if want == nil {
			want = c.rows
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\n got %q\nwant %q", c.rows, got, want)
		}
	}
}

// Whatever stands around it, a key does not get through, and nothing of the rest
// is lost.
func FuzzMaskKeys(f *testing.F) {
	f.Add("401 for key ", " of yours")
	f.Add("key=", "\nx")
	f.Add("\xff", "é")
	f.Fuzz(func(t *testing.T, before, after string) {
		const key = "sk-ant-api03-AAAAsecret1234"
		rows := strings.Split(before+" "+key+" "+after, "\n")
		maskKeys(rows)
		text := strings.Join(rows, "\n")
		if strings.Contains(text, key) {
			t.Errorf("%q", text)
		}
		plain := strings.Split("the limit is reached, try again later", "\n")
		maskKeys(plain)
		if plain[0] != "the limit is reached, try again later" {
			t.Errorf("%q", plain)
		}
	})
}
