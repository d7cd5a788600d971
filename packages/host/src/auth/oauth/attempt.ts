// What every way to a grant has in common: which scopes are asked for and asked for again, whether tokens are bound to a key, and what comes of it.
import type { Grant, OAuthClient, Subject, TokenSet } from '../grant.ts'
import { canBind, createDpopKey, type DpopKey } from './dpop.ts'
import type { Discovery, SignInOptions } from './flow.ts'
import { planScopes, type ScopePlan, scopesAfterRefusal } from './scopes.ts'
import { SignInError, type SignInErrorKind } from './sign-in-error.ts'

/** Shown on consent pages unless a program says otherwise. */
export const CLIENT_NAME = 'Convoke'

/** Refusals that other scopes might change. */
const REFUSALS: ReadonlySet<SignInErrorKind> = new Set(['provider-refused', 'scope-refused', 'registration-refused'])

/** What a person is asked for. */
export function scopesFor(
  discovery: Discovery,
  { scopes, server, stepUp, scopesIfListed }: Pick<SignInOptions, 'scopes' | 'server' | 'stepUp' | 'scopesIfListed'>,
): ScopePlan {
  return planScopes({
    explicit: scopes,
    configured: server.scopes,
    stepUp: stepUp?.scopes,
    granted: stepUp?.granted,
    challenged: discovery.challengedScopes,
    discovered: discovery.discoveredScopes,
    issuerScopes: discovery.issuerScopes,
    ifListed: scopesIfListed,
  })
}

/** Asks, and once more with other scopes where the refusal leaves any to ask for. */
export async function askForScopes<Answer>(
  plan: ScopePlan,
  ask: (scopes: readonly string[]) => Promise<Answer>,
  onDropped: () => void,
): Promise<Answer> {
  try {
    return await ask(plan.scopes)
  } catch (error) {
    if (!(error instanceof SignInError) || !REFUSALS.has(error.kind) || error.details.error === undefined) throw error
    const others = scopesAfterRefusal(plan, error.details.error)
    if (others === undefined) throw error
    onDropped()
    return await ask(others)
  }
}

/** The key that tokens are to be bound to; undefined: none. */
export async function bindingKey(
  { wantsDpop, issuer }: Discovery,
  { dpop, server, dpopKey }: Pick<SignInOptions, 'dpop' | 'server'> & { readonly dpopKey?: DpopKey | undefined },
): Promise<DpopKey | undefined> {
  const isAlways = (dpop ?? server.oauth?.dpop) === 'always'
  if (!(wantsDpop || isAlways) || !canBind(issuer.dpopAlgorithms)) return undefined
  return dpopKey ?? createDpopKey()
}

/** What a grant is made of besides what was discovered. */
export interface Granted {
  readonly client: OAuthClient
  readonly tokens: TokenSet
  readonly scopes: readonly string[]
  readonly subject?: Subject | undefined
  readonly key?: DpopKey | undefined
}

/** What came of it all. */
export function grantOf({ issuer, resource }: Discovery, { client, tokens, scopes, subject, key }: Granted): Grant {
  return {
    issuer,
    resource,
    client,
    tokens,
    ...(scopes.length === 0 ? {} : { requestedScopes: scopes }),
    ...(subject === undefined ? {} : { subject }),
    ...(key === undefined ? {} : { dpopKey: key }),
  }
}
