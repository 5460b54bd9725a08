package realagents

import "time"

// recitals are answers that consist of a limit banner, word for word.
var recitals = map[Agent]string{
	Claude:   "You've hit your 5-hour limit · resets 6:45pm (UTC)",
	Codex:    "■ You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 5:44 PM.",
	Gemini:   "✕ [API Error: You have exhausted your daily quota on this model.]",
	OpenCode: "Rate limit reached for gpt-5 on requests per min (RPM): Limit 3, Used 3. [retrying in 20s attempt #1]",
	Qwen:     "✕ [API Error: 429 Free allocated quota exceeded.] (Press Ctrl+Y to retry)",
}

func recite(a Agent) string { return `{"reply":{"text":"` + recitals[a] + `","chunks":3}}` }

// Controls that several agents share.
const (
	throttle = `{"scenario":{"kind":"rate","retry_after_s":8,"next":1}}`
	overload = `{"scenario":{"kind":"overload"}}`
	badKey   = `{"scenario":{"kind":"auth"}}`
	credit   = `{"scenario":{"kind":"credit"}}`
	daily    = `{"scenario":{"kind":"daily"}}`
	anHour   = `{"scenario":{"kind":"window","resets_in_s":3600}}`
)

// once keeps Claude Code from trying ten times, three minutes long.
var once = []string{"CLAUDE_CODE_MAX_RETRIES=1"}

// scenarios are those on a screen. A page of the agent's notes each.
func scenarios() []scenario {
	var all []scenario
	for _, list := range [][]scenario{onClaude(), onCodex(), onGemini(), onOpenCode(), onQwen()} {
		all = append(all, list...)
	}
	return all
}

func onClaude() []scenario {
	const rejected = `●APIError:Requestrejected\(429\)·`
	return []scenario{
		{name: "plain", agent: Claude, shows: `●OK:pane1goon`, answers: true},
		{name: "throttle", agent: Claude, control: throttle, answers: true,
			shows: `✻APIerror·retryingin\d+s·attempt1/10`, class: "retrying", cause: "rate|unknown"},
		{name: "rejected", agent: Claude, control: `{"scenario":{"kind":"rate","retry_after_s":90}}`,
			shows: rejected + `Thisrequestwouldexceedyouraccount'sratelimit`, class: "rate"},
		{name: "exhausted", agent: Claude, env: once, control: `{"scenario":{"kind":"rate","tokens":true}}`,
			shows: rejected + `Thisrequestwouldexceedtheratelimitforyourorganization`, class: "rate"},
		{name: "overload", agent: Claude, env: once, control: overload,
			shows: `●APIError:529Overloaded`, class: "overload"},
		{name: "server", agent: Claude, env: once, control: `{"scenario":{"kind":"overload","status":500,"message":"Internal server error"}}`,
			shows: `●APIError:500Internalservererror`, class: "overload"},
		{name: "window", agent: Claude, plan: true, control: anHour,
			shows: `⎿You'vehityour5-hourlimit·resets\d+(:\d\d)?[ap]m\(UTC\)`, class: "window", reset: time.Hour},
		{name: "week", agent: Claude, plan: true, control: `{"scenario":{"kind":"window","claim":"seven_day","resets_in_s":180000}}`,
			shows: `⎿You'vehityourweeklylimit·resets\w+\d+.*\(UTC\)`, class: "window", reset: 50 * time.Hour},
		{name: "model", agent: Claude, plan: true, control: `{"scenario":{"kind":"window","claim":"seven_day_opus","resets_in_s":3600}}`,
			shows: `⎿You'vehityourOpuslimit·resets`, class: "window", reset: time.Hour},
		{name: "not-your-limit", agent: Claude, plan: true, env: once, control: `{"scenario":{"kind":"window","claim":"none"}}`,
			shows: `●APIError:Serveristemporarilylimitingrequests\(notyourusagelimit\)`, class: "rate"},
		{name: "warning", agent: Claude, plan: true, control: `{"scenario":{"kind":"warning","resets_in_s":3600}}`,
			shows: `You'veused93%ofyour5-hourlimit`, class: "warning"}, // a note of its own, some seconds after the answer
		{name: "credit", agent: Claude, control: credit,
			shows: `⎿Creditbalancetoolow·Addfunds`, class: "credit"},
		{name: "spend", agent: Claude, control: `{"scenario":{"kind":"spend","resets_in_s":86400}}`,
			shows: rejected + `YouhavereachedyourspecifiedAPIusagelimits`, class: "spend"},
		{name: "spend-400", agent: Claude, control: `{"scenario":{"kind":"spend","status":400,"resets_in_s":86400}}`,
			shows: `●APIError:400YouhavereachedyourspecifiedAPIusagelimits`, class: "spend"},
		{name: "bad-key", agent: Claude, env: once, control: badKey,
			shows: `⎿InvalidAPIkey`, class: "auth"},
		{name: "recital", agent: Claude, control: recite(Claude), shows: `●You'vehityour5-hourlimit·resets6:45pm\(UTC\)`, answers: true},
		{name: "error-recital", agent: Claude, control: `{"reply":{"text":"API Error: Request rejected (429) · Rate limited. OK: pane1 go on"}}`,
			shows: `●APIError:Requestrejected\(429\)·Ratelimited`, answers: true},
	}
}

func onCodex() []scenario {
	return []scenario{
		{name: "plain", agent: Codex, shows: `•OK:pane1goon`, answers: true},
		{name: "throttle", agent: Codex, control: throttle, answers: true,
			shows: `Serverisbusy,reconnecting1/5.*Exceededretrylimit,laststatus:429`, class: "retrying", cause: "rate"},
		{name: "rejected", agent: Codex, control: `{"scenario":{"kind":"rate"}}`,
			shows: `■exceededretrylimit,laststatus:429TooManyRequests`, class: "rate"},
		{name: "in-stream", agent: Codex, control: `{"scenario":{"kind":"rate","in_stream":true,"retry_after_s":8,"next":1}}`, answers: true,
			shows: `Reconnecting\.\.\.1/5.*Ratelimitexceeded:Ratelimitreachedforgpt-5`, class: "retrying", cause: "rate"},
		{name: "overload", agent: Codex, control: overload,
			shows: `■Selectedmodelisatcapacity`, class: "overload"},
		{name: "window", agent: Codex, control: anHour,
			shows: `■You’vehityourusagelimit\..*tryagainat(.*,\d{4})?\d+:\d\d[AP]M`, class: "window", reset: time.Hour},
		{name: "week", agent: Codex, control: `{"scenario":{"kind":"daily","resets_in_s":180000}}`,
			shows: `■You’vehityourusagelimit\..*tryagainat.*,\d{4}\d+:\d\d[AP]M`, class: "window", reset: 50 * time.Hour},
		{name: "warning", agent: Codex, control: `{"scenario":{"kind":"warning","resets_in_s":3600}}`, answers: true,
			shows: `⚠Headsup,youhavelessthan10%ofyour5hlimitleft`, class: "warning"},
		{name: "credit", agent: Codex, control: credit,
			shows: `■Quotaexceeded\.Checkyourplanandbillingdetails`, class: "credit"},
		{name: "workspace-credit", agent: Codex, control: `{"scenario":{"kind":"credit","reached":"workspace_member_credits_depleted"}}`,
			shows: `■Yourworkspaceisoutofcredits`, class: "credit"},
		{name: "spend", agent: Codex, control: `{"scenario":{"kind":"spend"}}`,
			shows: `■Youhityourspendcapsetbytheownerofyourworkspace`, class: "spend"},
		{name: "bad-key", agent: Codex, control: badKey,
			shows: `■unexpectedstatus401Unauthorized`, class: "auth"},
		{name: "recital", agent: Codex, control: recite(Codex), shows: `•■You’vehityourusagelimit`, answers: true},
	}
}

func onGemini() []scenario {
	const thinking = `Thinking\.\.\.\(esctocancel,[1-9]`
	return []scenario{
		{name: "plain", agent: Gemini, shows: `✦OK:pane1goon`, answers: true},
		{name: "throttle", agent: Gemini, control: throttle, answers: true,
			shows: thinking, class: "retrying", cause: "rate"},
		{name: "tokens", agent: Gemini, slow: true, control: `{"scenario":{"kind":"rate","tokens":true,"retry_after_s":8,"next":1}}`, answers: true,
			shows: thinking, class: "retrying", cause: "rate"},
		{name: "overload", agent: Gemini, slow: true, control: `{"scenario":{"kind":"overload","next":1}}`, answers: true,
			shows: thinking, class: "retrying", cause: "overload"},
		{name: "daily", agent: Gemini, control: daily,
			shows: `UsagelimitreachedforallPromodels\..*●1\.Keeptrying`, class: "daily"},
		{name: "window", agent: Gemini, control: anHour,
			shows: `UsagelimitreachedforallPromodels\.│+Accessresetsat\d+:\d\d[AP]MUTC`, class: "window|daily", reset: time.Hour},
		{name: "credit", agent: Gemini, control: credit,
			shows: thinking, class: "credit|retrying", cause: "credit"},
		{name: "spend", agent: Gemini, slow: true, control: `{"scenario":{"kind":"spend"}}`,
			shows: thinking, class: "spend|retrying", cause: "spend"},
		{name: "limit-0", agent: Gemini, slow: true, control: `{"scenario":{"kind":"credit","form":"limit0"}}`,
			shows: `UsagelimitreachedforallPromodels\.`, class: "credit|daily"},
		{name: "billing", agent: Gemini, slow: true, control: `{"scenario":{"kind":"credit","form":"billing"}}`,
			shows: `✕\[APIError:.*403`, class: "auth"},
		{name: "bad-key", agent: Gemini, slow: true, control: badKey,
			shows: `✕\[APIError:.*401`, class: "auth"},
		{name: "recital", agent: Gemini, control: recite(Gemini), shows: `✦✕\[APIError:Youhaveexhaustedyourdailyquota`, answers: true},
	}
}

func onOpenCode() []scenario {
	return []scenario{
		{name: "plain", agent: OpenCode, slow: true, shows: `OK:pane1goon`, answers: true},
		{name: "throttle", agent: OpenCode, slow: true, control: `{"scenario":{"kind":"rate","retry_after_s":9,"next":1}}`, answers: true,
			shows: `limitreachedforgpt-5`, class: "retrying", cause: "rate"}, // dots of its spinner stand in the first words
		{name: "credit", agent: OpenCode, control: credit,
			shows: `exceededyourcurrentquota`, class: "credit"},
		{name: "bad-key", agent: OpenCode, slow: true, control: badKey,
			shows: `┃IncorrectAPIkeyprovided\.┃`, class: "auth"},
		{name: "recital", agent: OpenCode, slow: true, control: recite(OpenCode), shows: `Ratelimitreachedforgpt-5onrequests`, answers: true},
	}
}

func onQwen() []scenario {
	return []scenario{
		{name: "plain", agent: Qwen, shows: `✦OK:pane1goon`, answers: true},
		{name: "credit", agent: Qwen, control: `{"scenario":{"kind":"credit","status":402}}`,
			shows: `✕\[APIError:402Youexceededyourcurrentquota`, class: "credit"},
		{name: "bad-key", agent: Qwen, control: badKey,
			shows: `✕\[APIError:401IncorrectAPIkeyprovided`, class: "auth"},
		{name: "recital", agent: Qwen, slow: true, control: recite(Qwen), shows: `✦✕\[APIError:429Freeallocatedquotaexceeded`, answers: true},
		{name: "throttle", agent: Qwen, control: `{"scenario":{"kind":"rate"}}`, slow: true,
			shows: `✕\[APIError:429Ratelimitreached.*Retryingin\d+s`, class: "retrying", cause: "rate"},
	}
}

// headlessScenarios are calls on pipes. What they print is theirs, so the
// finding comes with the record, or with the end where there is only text.
func headlessScenarios() []scenario {
	claude := func(format string) []string {
		return []string{"-p", "pane1 go on", "--output-format", format, "--verbose"}
	}
	gemini := func(format string) []string { return []string{"-p", "pane1 go on", "-o", format} }
	text := []string{"-p", "pane1 go on"}
	return []scenario{
		{name: "window", agent: Claude, plan: true, control: anHour, args: text, code: 1,
			shows: `You'vehityour5-hourlimit`, class: "window", reset: time.Hour},
		{name: "rate", agent: Claude, env: once, control: `{"scenario":{"kind":"rate"}}`, args: text, code: 1,
			shows: `APIError:Requestrejected\(429\)`, class: "rate"},
		{name: "credit-json", agent: Claude, control: credit, args: []string{"-p", "pane1 go on", "--output-format", "json"}, code: 1,
			shows: `"is_error":true`, class: "credit"},
		{name: "throttle", agent: Claude, control: throttle, args: text, answers: true,
			shows: `^OK:pane1goon$`, class: "retrying", cause: "rate"},
		{name: "overload-json", agent: Claude, control: `{"scenario":{"kind":"overload","next":1}}`, args: claude("json"), answers: true,
			shows: `OK:pane1goon`, class: "retrying", cause: "overload"},
		{name: "throttle-stream", agent: Claude, control: throttle, args: claude("stream-json"), answers: true,
			shows: `"api_retry".*OK:pane1goon`, class: "retrying", cause: "rate"},
		{name: "window-stream", agent: Claude, plan: true, control: anHour, args: claude("stream-json"), code: 1,
			shows: `"rate_limit_event"`, class: "window", reset: time.Hour},
		{name: "warning-stream", agent: Claude, plan: true, control: `{"scenario":{"kind":"warning","resets_in_s":3600}}`, args: claude("stream-json"), answers: true,
			shows: `"allowed_warning".*OK:pane1goon`, class: "warning"},
		{name: "recital", agent: Claude, control: recite(Claude), args: text, answers: true, shows: `You'vehityour5-hourlimit`},
		{name: "recital-stream", agent: Claude, control: recite(Claude), args: claude("stream-json"), answers: true, shows: `You'vehityour5-hourlimit`},

		{name: "window", agent: Codex, control: anHour, args: []string{"exec", "--skip-git-repo-check", "pane1 go on"}, code: 1,
			shows: `ERROR:You’vehityourusagelimit`, class: "window", reset: time.Hour},
		{name: "rate-json", agent: Codex, control: `{"scenario":{"kind":"rate"}}`, args: []string{"exec", "--skip-git-repo-check", "--json", "pane1 go on"}, code: 1,
			shows: `"turn\.failed"`, class: "rate"},
		{name: "throttle-json", agent: Codex, control: `{"scenario":{"kind":"rate","in_stream":true,"retry_after_s":3,"next":1}}`, answers: true,
			args: []string{"exec", "--skip-git-repo-check", "--json", "pane1 go on"}, shows: `Reconnecting\.\.\..*OK:pane1goon`, class: "retrying", cause: "rate"},
		{name: "recital", agent: Codex, control: recite(Codex), args: []string{"exec", "--skip-git-repo-check", "pane1 go on"}, answers: true, shows: `You’vehityourusagelimit`},

		{name: "daily", agent: Gemini, slow: true, control: daily, args: text, code: 1, shows: `TerminalQuotaError`, class: "daily"},
		{name: "daily-json", agent: Gemini, slow: true, control: daily, args: gemini("json"), code: 173, shows: `"code":429`, class: "daily"},
		{name: "daily-stream", agent: Gemini, slow: true, control: daily, args: gemini("stream-json"), code: 173, shows: `"status":"error"`, class: "daily"},
		{name: "throttle", agent: Gemini, slow: true, control: throttle, args: text, answers: true,
			shows: `Attempt1failed.*OK:pane1goon`, class: "retrying", cause: "rate"},
		{name: "recital", agent: Gemini, slow: true, control: recite(Gemini), args: text, answers: true, shows: `exhaustedyourdailyquota`},

		{name: "bad-key", agent: OpenCode, control: badKey, args: []string{"run", "pane1 go on"}, code: 1,
			shows: `IncorrectAPIkeyprovided`, class: "auth"}, // its "Error:" is coloured
		{name: "bad-key-json", agent: OpenCode, slow: true, control: badKey, args: []string{"run", "--format", "json", "pane1 go on"}, code: 1,
			shows: `IncorrectAPIkeyprovided`, class: "auth"},
		{name: "recital", agent: OpenCode, slow: true, control: recite(OpenCode), args: []string{"run", "pane1 go on"}, answers: true, shows: `Ratelimitreachedforgpt-5`},
		{name: "rate", agent: OpenCode, control: `{"scenario":{"kind":"rate","retry_after_s":2}}`, args: []string{"run", "pane1 go on"}, code: 1, slow: true,
			shows: `Ratelimitreachedforgpt-5`, class: "retrying", cause: "rate"}, // by its log; the row comes with the end

		{name: "bad-key", agent: Qwen, control: badKey, args: text, code: 1, shows: `\[APIError:401`, class: "auth"},
		{name: "credit-json", agent: Qwen, slow: true, control: `{"scenario":{"kind":"credit","status":402}}`, args: gemini("json"),
			shows: `\[APIError:402`, class: "credit"},
		{name: "credit-stream", agent: Qwen, slow: true, control: `{"scenario":{"kind":"credit","status":402}}`, args: gemini("stream-json"),
			shows: `\[APIError:402`, class: "credit"},
		{name: "recital-json", agent: Qwen, slow: true, control: recite(Qwen), args: gemini("json"), answers: true, shows: `Freeallocatedquotaexceeded`},
	}
}
