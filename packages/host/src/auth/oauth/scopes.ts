// Which scopes a sign-in asks for. Pure.

const SCOPES_MAX = 200
const SCOPES_CHARS_MAX = 8_192
/** RFC 6749, 3.3. */
const SCOPE = /^[!\x23-\x5b\x5d-\x7e]+$/
/** Asks for a refresh token, where the authorization server lists it (OpenID Connect Core, 11). */
const OFFLINE_ACCESS = 'offline_access'

/** Everything that may say which scopes are wanted. Absent: says nothing. */
export interface ScopeFacts {
  /** Of whoever starts the sign-in. */
  readonly explicit?: readonly string[] | undefined
  /** Of the entry. */
  readonly configured?: readonly string[] | undefined
  /** Of the refusal that led to the sign-in. */
  readonly challenged?: readonly string[] | undefined
  /** Of the server's metadata. */
  readonly discovered?: readonly string[] | undefined
  /** What is had already, when more is wanted. */
  readonly stepUp?: readonly string[] | undefined
  /** The part of `stepUp` that was granted before. */
  readonly granted?: readonly string[] | undefined
  /** Of the authorization server's metadata. */
  readonly issuerScopes?: readonly string[] | undefined
  /** Wanted besides, where the authorization server lists them and nobody said exactly what to ask for. */
  readonly ifListed?: readonly string[] | undefined
}

/** What to ask for. Without scopes the parameter is left out. */
export interface ScopePlan {
  readonly scopes: readonly string[]
  readonly source: 'explicit' | 'configured' | 'step-up' | 'challenge' | 'discovered' | 'none'
  /** Of a step-up: what is asked for without what was missing. */
  readonly without?: readonly string[]
}

/** Trimmed, in order, each once; what is no scope is left out; at most 200 with 8,192 characters together. */
export function normalizeScopes(scopes: Iterable<string>): readonly string[] {
  const clean = new Set<string>()
  let chars = 0
  for (const one of scopes)
    for (const scope of one.split(/\s+/)) {
      if (!SCOPE.test(scope) || clean.has(scope)) continue
      chars += scope.length + 1
      if (clean.size === SCOPES_MAX || chars > SCOPES_CHARS_MAX) return [...clean]
      clean.add(scope)
    }
  return [...clean]
}

/** The first source that says something. An explicit or configured list counts even when it is empty: then nothing is asked for. */
export function planScopes(facts: ScopeFacts): ScopePlan {
  const { explicit, configured, stepUp, challenged, discovered } = facts
  if (stepUp !== undefined) {
    const scopes = normalizeScopes([...stepUp, ...(explicit ?? []), ...(challenged ?? [])])
    if (scopes.length > 0)
      return { scopes: withListed(scopes, facts), source: 'step-up', without: withoutStepUp(facts) }
  }
  if (explicit !== undefined) return { scopes: normalizeScopes(explicit), source: 'explicit' }
  if (configured !== undefined) return { scopes: normalizeScopes(configured), source: 'configured' }
  for (const [source, list] of [
    ['challenge', challenged],
    ['discovered', discovered],
  ] as const) {
    const scopes = normalizeScopes(list ?? [])
    if (scopes.length > 0) return { scopes: withListed(scopes, facts), source }
  }
  const listed = listedOf(facts)
  return listed.length === 0
    ? { scopes: [], source: 'none' }
    : { scopes: withListed(listed, facts), source: 'discovered' }
}

function withoutStepUp(facts: ScopeFacts): readonly string[] {
  const granted = normalizeScopes([...(facts.granted ?? []), ...(facts.explicit ?? [])])
  if (granted.length > 0) return withListed(granted, facts)
  return planScopes({ ...facts, stepUp: undefined, challenged: undefined }).scopes
}

/** A sign-in that ends with its first token is no use to a host that runs for weeks. What people wrote themselves stays as it is. */
function withListed(scopes: readonly string[], facts: ScopeFacts): readonly string[] {
  const isLasting = facts.issuerScopes?.includes(OFFLINE_ACCESS) === true
  const more = [...listedOf(facts), ...(isLasting ? [OFFLINE_ACCESS] : [])]
  return more.length === 0 ? scopes : normalizeScopes([...scopes, ...more])
}

function listedOf({ ifListed = [], issuerScopes = [] }: ScopeFacts): readonly string[] {
  return ifListed.filter((scope) => issuerScopes.includes(scope))
}

/** Errors after which it makes no sense to ask with other scopes: somebody said no, or nobody is at home. */
const NOT_ABOUT_SCOPES: ReadonlySet<string> = new Set(['access_denied', 'server_error', 'temporarily_unavailable'])

/** Ask once more without any? Only when nobody but the metadata wanted these scopes, and the provider refused with an OAuth error. */
export function mayDropScopes({ scopes, source }: ScopePlan, error: string): boolean {
  return source === 'discovered' && scopes.length > 0 && !NOT_ABOUT_SCOPES.has(error)
}

/**
 * What to ask for once more after a refusal; undefined: it stands. What a server has missed may be a scope that its authorization server does not know, and it
 * is remembered: nobody could sign in ever again.
 */
export function scopesAfterRefusal(plan: ScopePlan, error: string): readonly string[] | undefined {
  if (mayDropScopes(plan, error)) return []
  const { scopes, without } = plan
  if (without === undefined || NOT_ABOUT_SCOPES.has(error)) return undefined
  return scopes.every((scope) => without.includes(scope)) ? undefined : without
}
