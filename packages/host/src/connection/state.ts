// The life of one connection. Pure: facts and the time are in the events, what to do about them is in the effects.
import { type HostErrorCode, unreachable } from '../base/index.ts'

/** Why a server is not there. */
export interface Failure {
  readonly code: HostErrorCode
  /** For a person: names the server, the limit, the last words of the server and the way out. */
  readonly message: string
}

/** What a failed start or a lost connection leads to. */
export type FailureKind = 'failed' | 'needs-auth' | 'needs-input'

interface Since {
  /** Milliseconds of the epoch. */
  readonly sinceAtMs: number
}

/** Where one connection is. Every state that is not `ready` says why. */
export type ConnectionState =
  | (Since & {
      readonly kind: 'dormant'
      readonly reason: Failure
      /** Failures in a row of the connection that this one replaces. */
      readonly failuresBefore?: number
    })
  | (Since & {
      readonly kind: 'installing' | 'starting'
      readonly reason: Failure
      readonly failuresBefore: number
      /** The server was ready and has forgotten its session: a new one is being made. Nobody cancels that as a start. */
      readonly isRenewal?: true
    })
  | (Since & { readonly kind: 'ready'; readonly failuresBefore: number })
  | (Since & {
      readonly kind: 'failed'
      readonly reason: Failure
      /** Failures in a row, this one included. */
      readonly failures: number
      /** Not started again before; milliseconds of the epoch. */
      readonly retryAtMs: number
    })
  | (Since & { readonly kind: 'needs-auth' | 'needs-input' | 'disabled'; readonly reason: Failure })
  | (Since & { readonly kind: 'cancelled'; readonly reason: Failure })
  | (Since & { readonly kind: 'closed'; readonly reason: Failure })

/** What can happen to a connection; `atMs` is the time of the epoch. */
export type ConnectionEvent =
  /** Somebody needs the server. */
  | { readonly kind: 'needed'; readonly atMs: number }
  /** A package runner may have to download the server first. */
  | { readonly kind: 'installing' }
  /** The server itself has said something: no package is being installed any more. */
  | { readonly kind: 'installed' }
  | { readonly kind: 'opened'; readonly atMs: number }
  | { readonly kind: 'open-failed'; readonly atMs: number; readonly as: FailureKind; readonly reason: Failure }
  /** The server has forgotten the session of a ready connection; a new one is being made. `opened` or `lost` ends that. */
  | { readonly kind: 'session-lost'; readonly atMs: number }
  /** A ready connection is gone, or its credentials are not accepted any more. */
  | { readonly kind: 'lost'; readonly atMs: number; readonly as: FailureKind; readonly reason: Failure }
  | { readonly kind: 'cancel'; readonly atMs: number; readonly reason: Failure }
  | { readonly kind: 'release'; readonly atMs: number }

/** What the shell does after a transition, in this order. */
export type ConnectionEffect = 'end-attempt' | 'begin-attempt' | 'report'

/** A state and what has to be done to be in it. */
export interface Transition {
  readonly state: ConnectionState
  readonly effects: readonly ConnectionEffect[]
}

/** First pause after a failure, in milliseconds; it doubles. */
export const RETRY_DELAY_MS = 1_000
/** Longest pause between two starts, in milliseconds. */
export const RETRY_DELAY_MS_MAX = 30_000
/** A server that was ready for so long has a clean record: when it crashes it may be started again at once. */
export const STABLE_AFTER_MS = 10_000

/** The pause after so many failures in a row, in milliseconds: 0, 1 s, 2 s, 4 s … 30 s. */
export function retryDelayMs(failures: number): number {
  if (failures <= 0) return 0
  return Math.min(RETRY_DELAY_MS_MAX, RETRY_DELAY_MS * 2 ** Math.min(failures - 1, 10))
}

const ignore = (state: ConnectionState): Transition => ({ state, effects: [] })

/** Pure. An event that means nothing in a state is ignored, never an error: events race. */
export function transition(state: ConnectionState, event: ConnectionEvent): Transition {
  if (state.kind === 'closed') return ignore(state)
  switch (event.kind) {
    case 'needed':
      return onNeeded(state, event)
    case 'installing':
    case 'installed':
      return onInstall(state, event.kind)
    case 'opened':
      if (!isStarting(state)) return ignore(state)
      return {
        state: { kind: 'ready', sinceAtMs: event.atMs, failuresBefore: state.failuresBefore },
        effects: ['report'],
      }
    case 'open-failed':
      if (!isStarting(state)) return ignore(state)
      return fail(event, state.failuresBefore + 1)
    case 'session-lost':
      return onSessionLost(state, event.atMs)
    case 'lost':
      if (isRenewal(state)) return fail(event, state.failuresBefore + 1)
      if (state.kind !== 'ready') return ignore(state)
      // A short life counts as a failure, so that a server which dies again and again is not started all the time.
      return fail(event, event.atMs - state.sinceAtMs >= STABLE_AFTER_MS ? 0 : state.failuresBefore + 1)
    case 'cancel':
      // A dormant connection has promised nothing, and a settled one has nothing to cancel.
      if (!isStarting(state) || isRenewal(state)) return ignore(state)
      return {
        state: { kind: 'cancelled', sinceAtMs: event.atMs, reason: event.reason },
        effects: ['end-attempt', 'report'],
      }
    case 'release':
      return { state: { kind: 'closed', sinceAtMs: event.atMs, reason: CLOSED }, effects: ['end-attempt'] }
    default:
      return unreachable(event, 'connection event')
  }
}

const RENEWING: Failure = {
  code: 'SERVER_NOT_READY',
  message: 'The server has forgotten the session; a new one is being made',
}
const STARTING: Failure = { code: 'SERVER_NOT_READY', message: 'Starting' }
const AGAIN = 'Starting again. Before: '
const INSTALLING: Failure = { code: 'SERVER_NOT_READY', message: 'The package runner may be installing it' }
const CLOSED: Failure = { code: 'HOST_CLOSED', message: 'The connection was closed' }

/** While it is tried again, the reason why it was not there stays visible. */
function again({ code, message }: Failure): Failure {
  return { code, message: message.startsWith(AGAIN) ? message : `${AGAIN}${message}` }
}

function isStarting(
  state: ConnectionState,
): state is Extract<ConnectionState, { readonly kind: 'installing' | 'starting' }> {
  return state.kind === 'installing' || state.kind === 'starting'
}

function isRenewal(
  state: ConnectionState,
): state is Extract<ConnectionState, { readonly kind: 'installing' | 'starting' }> {
  return isStarting(state) && state.isRenewal === true
}

function onSessionLost(state: ConnectionState, atMs: number): Transition {
  if (state.kind !== 'ready') return ignore(state)
  const { failuresBefore } = state
  return {
    state: { kind: 'starting', sinceAtMs: atMs, reason: RENEWING, failuresBefore, isRenewal: true },
    effects: ['report'],
  }
}

function onNeeded(state: ConnectionState, event: Extract<ConnectionEvent, { kind: 'needed' }>): Transition {
  const mayStart =
    state.kind === 'dormant' || state.kind === 'cancelled' || (state.kind === 'failed' && event.atMs >= state.retryAtMs)
  if (!mayStart) return ignore(state)
  return {
    state: {
      kind: 'starting',
      sinceAtMs: event.atMs,
      reason: state.kind === 'failed' ? again(state.reason) : STARTING,
      failuresBefore: failuresOf(state),
    },
    effects: ['begin-attempt', 'report'],
  }
}

function failuresOf(state: ConnectionState): number {
  if (state.kind === 'failed') return state.failures
  return state.kind === 'dormant' ? (state.failuresBefore ?? 0) : 0
}

function onInstall(state: ConnectionState, kind: 'installing' | 'installed'): Transition {
  if (kind === 'installing' && state.kind === 'starting')
    return { state: { ...state, kind, reason: INSTALLING }, effects: ['report'] }
  if (kind === 'installed' && state.kind === 'installing')
    return { state: { ...state, kind: 'starting', reason: STARTING }, effects: ['report'] }
  return ignore(state)
}

function fail(event: Extract<ConnectionEvent, { kind: 'open-failed' | 'lost' }>, failures: number): Transition {
  const { as, reason, atMs } = event
  const state: ConnectionState =
    as === 'failed'
      ? { kind: 'failed', sinceAtMs: atMs, reason, failures, retryAtMs: atMs + retryDelayMs(failures) }
      : { kind: as, sinceAtMs: atMs, reason }
  return { state, effects: ['end-attempt', 'report'] }
}
