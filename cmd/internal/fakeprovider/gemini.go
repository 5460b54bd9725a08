package fakeprovider

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"qshim/cmd/internal/fakeprovider/tier"
)

// geminiBody is the part of a generateContent request that matters here.
type geminiBody struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"contents"`
	GenerationConfig struct {
		ResponseMimeType string `json:"responseMimeType"`
	} `json:"generationConfig"`
}

func (b geminiBody) lastUser() string {
	for i := len(b.Contents) - 1; i >= 0; i-- {
		c := b.Contents[i]
		if c.Role == "model" {
			continue
		}
		for j := len(c.Parts) - 1; j >= 0; j-- {
			if t := strings.TrimSpace(c.Parts[j].Text); t != "" && !strings.HasPrefix(t, "<") {
				return t
			}
		}
	}
	return ""
}

// gemini serves /v1beta/models/MODEL:METHOD, also under Vertex's longer paths.
func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	_, last, _ := strings.Cut(r.URL.Path, "/models/")
	model, method, _ := strings.Cut(last, ":")
	var body geminiBody
	size, ok := readBody(w, r, &body)
	if !ok {
		return
	}
	if name, err := url.PathUnescape(model); err == nil {
		model = name
	}
	a := ask{provider: Gemini, account: Account(credential(r)), path: r.URL.Path, model: model, text: body.lastUser(), size: size}
	switch method {
	case "countTokens":
		writeJSON(w, http.StatusOK, map[string]int{"totalTokens": size/4 + 1})
	case "generateContent", "streamGenerateContent":
		s.geminiGenerate(w, r, a, body, method, func(v any) any { return v })
	default:
		notFound(w)
	}
}

// geminiGenerate answers both forms; wrap puts Code Assist's envelope around a
// chunk.
func (s *Server) geminiGenerate(w http.ResponseWriter, r *http.Request, a ask, body geminiBody, method string, wrap func(any) any) {
	a.stream = method == "streamGenerateContent"
	// The router and other helpers ask for JSON, not for a stream.
	a.side = !a.stream
	v := s.decide(a)
	if a.side && body.GenerationConfig.ResponseMimeType == "application/json" {
		v.reply.Text = `{"complexity_reasoning":"simple","complexity_score":10,"reasoning":"simple","model_choice":"flash"}`
	}
	hungUp := false
	defer func() { s.done(v, hungUp) }()
	if v.refused {
		s.geminiRefuse(w, v, a)
		return
	}
	s.status(v, http.StatusOK)
	if !a.stream {
		text, err := s.speak(r.Context(), v, a, func(string) error { return nil })
		hungUp = err != nil
		if !hungUp {
			writeJSON(w, http.StatusOK, wrap(geminiChunk(v, a, text, true)))
		}
		return
	}
	e := newEvents(w)
	_, err := s.speak(r.Context(), v, a, func(part string) error {
		return e.send("", wrap(geminiChunk(v, a, part, false)))
	})
	if err == nil {
		err = e.send("", wrap(geminiChunk(v, a, "", true)))
	}
	hungUp = err != nil
}

// geminiChunk is one GenerateContentResponse.
func geminiChunk(v verdict, a ask, part string, last bool) map[string]any {
	out := outputTokens(v, answerText(v, a))
	candidate := map[string]any{
		"index":   0,
		"content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": part}}},
	}
	if last {
		candidate["finishReason"] = "STOP"
	}
	return map[string]any{
		"candidates":   []any{candidate},
		"modelVersion": a.model,
		"responseId":   fmt.Sprintf("fake%06d", v.id),
		"usageMetadata": map[string]any{
			"promptTokenCount": v.input, "candidatesTokenCount": out, "totalTokenCount": v.input + out,
		},
	}
}

// geminiError is one refusal.
type geminiError struct {
	code            int
	status, message string
	details         []any
}

func (s *Server) geminiRefuse(w http.ResponseWriter, v verdict, a ask) {
	var e geminiError
	if a.provider == CodeAssist {
		e = codeAssistRefusal(v, a)
	} else {
		e = geminiRefusal(v, a)
	}
	if v.scenario.Message != "" {
		e.message = v.scenario.Message
	}
	if v.scenario.Status != 0 {
		e.code = v.scenario.Status
	}
	s.status(v, e.code)
	body := map[string]any{"code": e.code, "message": e.message, "status": e.status}
	if len(e.details) > 0 {
		body["details"] = e.details
	}
	writeJSON(w, e.code, map[string]any{"error": body})
}

const geminiQuotaText = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: https://ai.dev/rate-limit. \n* Quota exceeded for metric: generativelanguage.googleapis.com/%s, limit: %d, model: %s\nPlease retry in %s."

// geminiRefusal is the Gemini API's own refusal. The bodies of credit and spend
// carry the texts of public reports; their details are not known, so none are given.
func geminiRefusal(v verdict, a ask) geminiError {
	exhausted := func(message string, details ...any) geminiError {
		return geminiError{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", message, details}
	}
	switch v.scenario.Kind {
	case Daily:
		// The API states half a minute here although the day decides.
		return geminiQuota(a, "generate_content_free_tier_requests", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", 20, 34074824224*time.Nanosecond)
	case Window:
		// No windows on keys: a delay above 300 s makes Gemini CLI show its dialog with a time.
		return geminiQuota(a, "generate_content_paid_tier_requests", "GenerateRequestsPerProjectPerModel", 1000, until(v, 2*time.Hour))
	case Credit:
		switch v.scenario.Form {
		case "limit0":
			return geminiQuota(a, "generate_content_free_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", 0, 25465784708*time.Nanosecond)
		case "billing":
			return geminiError{http.StatusForbidden, "PERMISSION_DENIED", "This API method requires billing to be enabled. Please enable billing on project #123456789 by visiting https://console.developers.google.com/billing/enable?project=123456789 then retry.", []any{errorInfo("BILLING_DISABLED", "googleapis.com", map[string]string{"consumer": "projects/123456789", "service": "generativelanguage.googleapis.com"})}}
		}
		return exhausted("Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.")
	case Spend:
		return exhausted("Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend to manage your project spend cap.")
	case Overload:
		return geminiError{http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later.", nil}
	case Auth:
		return geminiError{http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.", nil}
	}
	if v.retryAfter < 0 {
		return exhausted("Resource has been exhausted (e.g. check quota).")
	}
	limit := v.limit
	if v.measure == tier.InputTokens {
		return geminiQuota(a, "generate_content_free_tier_input_token_count", "GenerateContentInputTokensPerModelPerMinute-FreeTier", max(limit, 1), v.retryAfter)
	}
	return geminiQuota(a, "generate_content_free_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", max(limit, 5), v.retryAfter)
}

// geminiQuota is a 429 with QuotaFailure and RetryInfo.
func geminiQuota(a ask, metric, id string, limit int, delay time.Duration) geminiError {
	return geminiError{
		http.StatusTooManyRequests, "RESOURCE_EXHAUSTED",
		fmt.Sprintf(geminiQuotaText, metric, limit, a.model, googleDelay(delay)),
		[]any{
			map[string]any{
				"@type": "type.googleapis.com/google.rpc.QuotaFailure",
				"violations": []any{map[string]any{
					"quotaMetric": "generativelanguage.googleapis.com/" + metric, "quotaId": id,
					"quotaDimensions": map[string]string{"location": "global", "model": a.model},
					"quotaValue":      fmt.Sprint(limit),
				}},
			},
			retryInfo(delay),
		},
	}
}

func retryInfo(d time.Duration) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": googleDelay(d)}
}

func errorInfo(reason, domain string, metadata map[string]string) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata}
}

// googleDelay writes a protobuf duration: seconds with a fraction, "34.5s".
func googleDelay(d time.Duration) string {
	s := fmt.Sprintf("%.9f", d.Seconds())
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + "s"
}

// until is the time left to the stated reset.
func until(v verdict, otherwise time.Duration) time.Duration {
	if v.resets.IsZero() {
		return otherwise
	}
	return max(v.resets.Sub(v.now), time.Second)
}
