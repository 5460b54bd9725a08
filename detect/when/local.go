package when

import (
	"strings"
	"sync"
	"time"
)

// Localised texts: numbers and the shape of a retry row survive translation
// (corpus case 18), so a delay with known words is read; ISO timestamps beside
// 重置 too. A localised date is not: it is unknown rather than guessed.

// localUnits are the units of the languages in phraseTable.
var localUnits = sync.OnceValue(func() map[string]time.Duration {
	m := map[string]time.Duration{}
	for unit, words := range map[time.Duration]string{
		time.Second: `s sec seg sek seconde secondes segundo segundos sekunde sekunden secondi secondo сек секунд секунды
			секунду 秒 秒钟 초 ثانية ثواني ثوان`,
		time.Minute: `m min minute minutes minuto minutos minuten minuti мин минут минуты минуту 分钟 分 분 دقيقة دقائق`,
		time.Hour:   `h std heure heures hora horas stunde stunden ora ore час часа часов 小时 時間 시간 ساعة ساعات`,
		day:         `j d jour jours dia dias día días tag tage tagen giorno giorni день дня дней 天 日 일 يوم أيام`,
	} {
		for _, w := range strings.Fields(words) {
			m[w] = unit
		}
	}
	return m
})

// scriptBehind end a delay in scripts without spaces: "30 秒后重试".
var scriptBehind = []string{"后重试", "后自动重试", "后再试", "後に再試行", "後にリトライ", "후 재시도", "후 다시", "후에 다시"}

// scriptReset stand behind a timestamp: "将在 2026-08-25 07:41:44 重置".
var scriptReset = []string{"重置", "恢复", "刷新"}

// scripted reads what stands before words of such scripts.
func (f *finder) scripted() {
	f.eachBefore(scriptBehind, func(p *parser) (statement, bool) {
		d, precision, ok := p.durationIn(localUnits())
		s := relative(f.q, d, precision)
		s.Retry = true
		return s, ok
	})
	f.eachBefore(scriptReset, func(p *parser) (statement, bool) {
		st, ok := p.stamp(f.q)
		if !ok || !st.iso {
			return statement{}, false
		}
		t, ok := st.resolve(f.q)
		return statement{Time: t}, ok
	})
}

// eachBefore reads what ends at each of words.
func (f *finder) eachBefore(words []string, read func(*parser) (statement, bool)) {
	for _, w := range words {
		from := 0
		for range maxStatements {
			i := strings.Index(f.p.l[from:], w)
			if i < 0 {
				break
			}
			f.before(from+i, read, from+i+len(w))
			from += i + len(w)
		}
	}
}

// localAhead reads the localised delay behind a phrase that began at.
func (f *finder) localAhead(p *parser, at int, retry bool) {
	p.space()
	start := p.i
	d, precision, ok := p.durationIn(localUnits())
	if !ok {
		return
	}
	s := relative(f.q, d, precision)
	p.skipAny(scriptBehind...)
	s.pos, s.end, s.Retry = at, p.i, retry
	f.add(s, start)
}
