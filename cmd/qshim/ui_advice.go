package main

import (
	"strings"
	"sync"

	"qshim/detect/finding"
	"qshim/policies"
)

// advice is what helps against a limit of this kind, in few words; "" where
// nothing is known to.
func advice(class finding.Class, measure finding.Measure, scope finding.Scope) string {
	switch class {
	case finding.Overload:
		return "nothing of yours to reduce"
	case finding.Window, finding.Daily:
		return "other sessions and devices on the account use it too"
	case finding.Credit:
		return "top up, or switch on automatic top-up"
	case finding.Spend:
		return "raise the cap where it was set"
	case finding.Rate, finding.Retrying:
	default:
		return ""
	}
	if scope == finding.Source {
		return "too many from this machine: run fewer at a time"
	}
	switch measure {
	case finding.InputTokens, finding.Tokens:
		return "smaller contexts help: narrower files, /compact, /clear"
	case finding.OutputTokens:
		return "smaller changes help, or a lower output limit"
	case finding.Requests:
		return "fewer requests at a time: stagger the work"
	case finding.Concurrency:
		return "fewer sessions at a time"
	case finding.Ramp:
		return "start slowly: the provider asks for a gradual rise"
	}
	return ""
}

// batchAdvice is for work that nobody waits for.
const batchAdvice = "batch work: the provider's batch API, or a higher tier"

// pages are where a provider shows what is used and what is allowed. Those of
// Anthropic, OpenAI and Google stand in their agents' own messages; the others
// are documented.
var pages = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"anthropic": "claude.ai/settings/usage", "openai": "platform.openai.com/account/rate-limits",
		"google": "ai.google.dev/gemini-api/docs/rate-limits", "openrouter": "openrouter.ai/settings/credits",
		"bedrock": "AWS console, Service Quotas", "vertex": "Google Cloud console, Quotas", "vertex-claude": "Google Cloud console, Quotas",
		"foundry": "Azure portal, Quotas", "github-copilot": "github.com/settings/copilot",
	}
})

// wallet is where money is put in or a cap is raised.
var wallet = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"anthropic": "platform.claude.com/settings/billing", "openai": "platform.openai.com/settings/organization/billing",
		"openrouter": "openrouter.ai/settings/credits",
	}
})

// whereToLook names the agent's own command and the provider's page.
func whereToLook(look, limiter string, class finding.Class) string {
	if class == finding.Person || class == finding.Overload {
		return ""
	}
	provider := policies.Provider(limiter)
	page := pages()[provider]
	if (class == finding.Credit || class == finding.Spend) && wallet()[provider] != "" {
		page = wallet()[provider]
	}
	return strings.Join(explainSaidOf(look, page), " or ")
}

// fullAdvice is advice with where to look, for status and log.
func fullAdvice(class finding.Class, measure finding.Measure, scope finding.Scope, limiter, look string, batch bool) string {
	parts := explainSaidOf(advice(class, measure, scope))
	if where := whereToLook(look, limiter, class); where != "" {
		parts = append(parts, "see "+where)
	}
	if batch && (class == finding.Rate || class == finding.Daily) {
		parts = append(parts, batchAdvice)
	}
	return strings.Join(parts, "; ")
}
