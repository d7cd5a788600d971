// How long ago something was, for people. Pure.

const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** `2 h ago`; less than a second, or a clock that was set back, is `just now`. */
export function agoText(thenMs: number, nowMs: number): string {
  const ageMs = nowMs - thenMs
  for (const [ms, unit] of UNITS) if (ageMs >= ms) return `${Math.floor(ageMs / ms)} ${unit} ago`
  return 'just now'
}

/** `in 2 h`, and {@link agoText} for what is over. */
export function inText(thenMs: number, nowMs: number): string {
  const leftMs = thenMs - nowMs
  for (const [ms, unit] of UNITS) if (leftMs >= ms) return `in ${Math.floor(leftMs / ms)} ${unit}`
  return agoText(thenMs, nowMs)
}

/** A moment as a clock of this machine shows it: the time today, else with the date in front. */
export function clockText(atMs: number, nowMs: number): string {
  const [at, now] = [new Date(atMs), new Date(nowMs)]
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':')
  if (at.toDateString() === now.toDateString()) return time
  return `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}-${twoDigits(at.getDate())} ${time}`
}

const twoDigits = (value: number): string => String(value).padStart(2, '0')
