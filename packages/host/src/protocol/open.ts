// Opens one session with one server: its target resolved, its era remembered, its handshake tried again where that is safe.

import {
  type Authorization,
  type EraVerdict,
  type JsonObject,
  Session,
  type SessionOptions,
  type SessionRenewal,
} from '@convoke/wire'
import { HostError } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { StartupBudget } from './budget.ts'
import { hostErrorOf } from './faults.ts'
import { retryHttp } from './retries.ts'
import { ServerSession, type ServerSessionInit } from './server-session.ts'
import type { ProtocolSettings } from './settings.ts'
import { type ResolvedTarget, resolveTarget } from './target.ts'

/** How a session introduces itself, and who answers what its server asks. */
export type Introduction = Pick<SessionOptions, 'capabilities' | 'clientInfo' | 'handlers' | 'era'> &
  Pick<ServerSessionInit, 'judge'>

/** One attempt to open a session. */
export interface OpenOptions {
  readonly definition: ServerDefinition
  readonly settings: ProtocolSettings
  readonly budget: StartupBudget
  readonly authorization?: Authorization | undefined
  /** Over those of the settings. */
  readonly introduction?: Introduction
  /** Hears of a session that a legacy server has forgotten, and does what is needed in its successor before any call goes on. */
  readonly renewal?: SessionRenewal
  /** Told before anything is started. */
  onResolved?(facts: Pick<ResolvedTarget, 'secrets' | 'credentials'>): void
  onNotification(method: string, params: JsonObject): void
  onNoise(text: string): void
  /** Told at once when the attempt has failed; `openServer` rejects with the same error when nothing is left running. */
  onFailing(failure: HostError): void
}

/**
 * Starts or reaches the server and shakes hands, within the budget.
 * @throws {HostError} and nothing is left running then.
 */
export async function openServer(options: OpenOptions): Promise<ServerSession> {
  const { definition, settings, budget } = options
  const { name, transport } = definition
  let secrets: readonly string[] = []
  try {
    const resolved = await resolveTarget(definition, settings, options.authorization)
    secrets = resolved.secrets
    options.onResolved?.(resolved)
    const session = await connect(options, resolved)
    if (options.introduction?.era === undefined) settings.memory.remember(definition, session.verdict)
    budget.sawOutput()
    return new ServerSession({
      server: name,
      transport: transport.kind,
      platform: settings.platform,
      session,
      secrets,
      judge: options.introduction?.judge,
    })
  } catch (error) {
    throw nameFailure(error, options, secrets)
  }
}

function nameFailure(error: unknown, { budget, definition }: OpenOptions, secrets: readonly string[]): HostError {
  return startFailure(hostErrorOf(error, definition.name, secrets), budget)
}

/**
 * The failure of a start as its clock sees it: an attempt that was aborted failed for the reason of the abort, one that ran out of time
 * for the whole budget, whatever part of it was being watched. The last words of the process are kept.
 */
export function startFailure(seen: HostError, budget: StartupBudget): HostError {
  const isTimeout = seen.code === 'STARTUP_TIMEOUT' || seen.code === 'LISTING_TIMEOUT'
  const reason: unknown = budget.signal.aborted ? budget.signal.reason : isTimeout ? budget.timeout() : seen
  if (!HostError.is(reason) || reason === seen) return seen
  const { stderrTail } = seen.details
  return stderrTail === undefined ? reason : reason.with({ stderrTail })
}

async function connect(options: OpenOptions, resolved: ResolvedTarget): Promise<Session> {
  const { definition, settings, budget } = options
  const { memory, platform } = settings
  const remembered = options.introduction?.era === undefined ? await memory.recall(definition) : undefined
  const attempt = (): Promise<Session> => Session.connect(sessionOptions(options, resolved, remembered))
  if (definition.transport.kind === 'stdio') return attempt()
  return retryHttp(attempt, {
    server: definition.name,
    platform,
    leftMs: () => budget.leftMs,
    signal: budget.signal,
  })
}

/** Did the server answer as one does that is asked in the wrong era? Silence and refused credentials say nothing about that. */
function contradictsMemory(error: unknown, { definition, budget }: OpenOptions): boolean {
  if (budget.signal.aborted) return false
  const { code, details } = hostErrorOf(error, definition.name)
  if (code === 'VERSION_UNSUPPORTED' || code === 'PROTOCOL_ERROR' || code === 'SERVER_ERROR') return true
  const status = details['status']
  return code === 'HTTP_STATUS' && typeof status === 'number' && status < 500
}

function sessionOptions(
  options: OpenOptions,
  { target, secrets }: ResolvedTarget,
  remembered: EraVerdict | undefined,
): SessionOptions {
  const { definition, settings, budget, introduction } = options
  return {
    target,
    platform: settings.platform,
    clientInfo: introduction?.clientInfo ?? settings.clientInfo,
    capabilities: introduction?.capabilities ?? settings.capabilities,
    handlers: introduction?.handlers ?? settings.handlers,
    ...(introduction?.era === undefined ? {} : { era: introduction.era }),
    ...(remembered === undefined ? {} : { remembered }),
    ...(options.renewal === undefined ? {} : { renewal: options.renewal }),
    messageBytesMax: definition.messageBytesMax,
    startupTimeoutMs: budget.leftMs,
    writeBurst: settings.writeBurst,
    signal: budget.signal,
    onNotification: (method, params) => options.onNotification(method, params),
    onNoise: (text) => {
      budget.sawOutput()
      options.onNoise(text)
    },
    onCredentials: (phase) => (phase === 'waiting' ? budget.pause() : budget.resume()),
    onFailing: (error) => {
      // The wire asks again on the same connection where it can; the next start begins without the memory.
      if (remembered !== undefined && contradictsMemory(error, options)) settings.memory.forget(definition)
      // Over HTTP it may be tried again, and nothing of it takes long to end.
      if (target.kind === 'stdio') options.onFailing(nameFailure(error, options, secrets))
    },
  }
}
