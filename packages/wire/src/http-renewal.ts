// What to do about a request that was refused for want of credentials: once more with other ones, ask for new ones, or leave it at that. Pure.

/** A refusal for want of credentials. */
export interface Challenge {
  readonly status: number
  readonly wwwAuthenticate: string | undefined
}

/** What one message has been through for want of credentials. */
export interface Renewals {
  /** How often the source of the credentials may be asked for other ones. */
  readonly challengesMax: number
  challenges: number
  /** Sent again with other credentials. */
  rounds: number
  /** The round before this one took what was there already. */
  hasAdopted: boolean
  /** These credentials were sent again with a new proof. */
  hasProved: boolean
  /** The headers helper was asked. */
  hasAskedHelper: boolean
}

/** What a message is: `answer` to a question of the server. */
export type MessageKind = 'call' | 'notification' | 'answer'

/** Step-up, refresh and adoption of what somebody else has obtained. */
const ROUNDS_MAX = 3
/**
 * A call may ask each time. A notification may ask once: nobody waits for it. What answers a question of the server asks nobody: it takes what others
 * have obtained.
 */
const CHALLENGES_MAX: Readonly<Record<MessageKind, number>> = { call: ROUNDS_MAX, notification: 1, answer: 0 }

/** For a message that has just been made. */
export function newRenewals(of: MessageKind): Renewals {
  return {
    challengesMax: CHALLENGES_MAX[of],
    challenges: 0,
    rounds: 0,
    hasAdopted: false,
    hasProved: false,
    hasAskedHelper: false,
  }
}

/** What is known about the refused request. */
export interface RefusedFacts {
  readonly challenge: Challenge
  /** It carried a proof of possession. */
  readonly hadProof: boolean
  /** Headers come from a helper. */
  readonly hasHelper: boolean
  /** There is a source of credentials. */
  readonly hasSource: boolean
}

/** The next step. `look`: has the source other credentials by now? */
export type RenewalStep = 'prove-again' | 'ask-helper' | 'look' | 'challenge' | 'give-up'

/** Before the source has been asked anything. */
export function planRenewal({ challenge, hadProof, hasHelper, hasSource }: RefusedFacts, so: Renewals): RenewalStep {
  // The credentials are good, only the proof was not: asking for others would wear them out.
  if (hadProof && wantsNonce(challenge)) return so.hasProved ? 'give-up' : 'prove-again'
  if (hasHelper && !so.hasAskedHelper && !asksForScope(challenge)) return 'ask-helper'
  if (!hasSource || so.rounds >= ROUNDS_MAX) return 'give-up'
  // Other credentials need not be ones that may do more: with 403 the source decides.
  if (challenge.status === 401 && !so.hasAdopted) return 'look'
  return planChallenge(so)
}

/** When the source has no other credentials than the refused ones, or they were refused as well. */
export function planChallenge({ challenges, challengesMax }: Renewals): 'challenge' | 'give-up' {
  return challenges < challengesMax ? 'challenge' : 'give-up'
}

/** The request goes out again with other credentials. */
export function noteRound(renewals: Renewals, how: 'adopted' | 'challenged'): void {
  renewals.rounds++
  renewals.hasAdopted = how === 'adopted'
  renewals.hasProved = false
  if (how === 'challenged') renewals.challenges++
}

/** The refusal is about what the token may do, not about who we are (RFC 6750 3.1). */
function asksForScope({ status, wwwAuthenticate = '' }: Challenge): boolean {
  return status === 403 && /\berror\s*=\s*"?insufficient_scope\b/i.test(wwwAuthenticate)
}

/** The proof has to hold a nonce of the server (RFC 9449 9). */
function wantsNonce({ status, wwwAuthenticate = '' }: Challenge): boolean {
  return status === 401 && /\berror\s*=\s*"?use_dpop_nonce\b/i.test(wwwAuthenticate)
}
