// When a server says that its tools changed: when to ask again, and when to stop asking. Pure; time is an argument.

/** A burst of notices is one change: the first waits for the others for so long, in milliseconds. */
export const DEBOUNCE_MS = 250
/** More refreshes than this … */
export const STORM_REFRESHES_MAX = 12
/** … within so long are a storm, in milliseconds … */
export const STORM_WINDOW_MS = 60_000
/** … and then nothing is asked for so long, in milliseconds. */
export const STORM_PAUSE_MS = 60_000

/** What is known about refreshing one catalog. */
export interface RefreshState {
  /** A notice has come that no refresh has answered yet. */
  readonly isWanted: boolean
  readonly isRunning: boolean
  /** When the last refreshes began, oldest first; monotonic milliseconds. At most one more than a storm needs. */
  readonly begunAtMs: readonly number[]
  /** Storm broken: nothing is asked before. */
  readonly pausedUntilMs: number | undefined
}

/** Nothing wanted, nothing running. */
export const CALM: RefreshState = { isWanted: false, isRunning: false, begunAtMs: [], pausedUntilMs: undefined }

/** What happened. */
export type RefreshEvent =
  /** The server says that something changed. */
  | { readonly kind: 'noticed'; readonly nowMs: number }
  /** The timer that was asked for has rung. */
  | { readonly kind: 'due'; readonly nowMs: number }
  /** The refresh that was begun is over, well or not. */
  | { readonly kind: 'done'; readonly nowMs: number }

/** What to do about it. */
export type RefreshAction =
  | { readonly kind: 'wait' }
  | { readonly kind: 'ring-in'; readonly ms: number }
  | { readonly kind: 'refresh' }
  /** Tell that the storm is broken, and ring when the pause is over. */
  | { readonly kind: 'pause'; readonly ms: number; readonly refreshes: number }

/** A state and what to do in it. */
export interface RefreshDecision {
  readonly state: RefreshState
  readonly action: RefreshAction
}

/** At most one refresh runs and one more is wanted, however many notices come. */
export function decideRefresh(state: RefreshState, event: RefreshEvent): RefreshDecision {
  switch (event.kind) {
    case 'noticed':
      return onNoticed(state, event.nowMs)
    case 'due':
      return onDue(state, event.nowMs)
    case 'done':
      return state.isWanted
        ? { state: { ...state, isRunning: false }, action: { kind: 'ring-in', ms: DEBOUNCE_MS } }
        : { state: { ...state, isRunning: false }, action: { kind: 'wait' } }
  }
}

function onNoticed(state: RefreshState, nowMs: number): RefreshDecision {
  const next = { ...state, isWanted: true }
  // Whoever runs or rings already will see that it is wanted.
  if (state.isWanted || state.isRunning) return { state: next, action: { kind: 'wait' } }
  if (state.pausedUntilMs !== undefined && nowMs < state.pausedUntilMs)
    return { state: next, action: { kind: 'ring-in', ms: state.pausedUntilMs - nowMs } }
  return { state: next, action: { kind: 'ring-in', ms: DEBOUNCE_MS } }
}

function onDue(state: RefreshState, nowMs: number): RefreshDecision {
  if (!state.isWanted || state.isRunning) return { state, action: { kind: 'wait' } }
  if (state.pausedUntilMs !== undefined && nowMs < state.pausedUntilMs)
    return { state, action: { kind: 'ring-in', ms: state.pausedUntilMs - nowMs } }
  const recent = state.begunAtMs.filter((atMs) => nowMs - atMs < STORM_WINDOW_MS)
  if (recent.length >= STORM_REFRESHES_MAX)
    return {
      state: { ...state, begunAtMs: [], pausedUntilMs: nowMs + STORM_PAUSE_MS },
      action: { kind: 'pause', ms: STORM_PAUSE_MS, refreshes: recent.length },
    }
  return {
    state: { isWanted: false, isRunning: true, begunAtMs: [...recent, nowMs], pausedUntilMs: undefined },
    action: { kind: 'refresh' },
  }
}
