// The awaits before a plan: everything that has to be found out about definitions, side by side and within limits. Starts nothing.
import { untilAborted } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import { connectionIdentity } from '../connection/index.ts'
import { type DesiredConnection, desiredConnection } from './desired.ts'
import { type ResolvedEnvironment, resolveEnvironment } from './environments.ts'
import type { CredentialReading, SetSettings } from './settings.ts'

/** Longest wait for the credentials of one server, in milliseconds. */
const CREDENTIALS_MS_MAX = 2_000

/** One definition with everything that was found out about it. */
export interface Observed {
  readonly desired: DesiredConnection
  readonly environment: ResolvedEnvironment
  readonly credentials: CredentialReading
}

const NO_CREDENTIALS: CredentialReading = { snapshot: { kind: 'none' }, isContended: false }
const UNREADABLE: CredentialReading = { snapshot: { kind: 'unreadable' }, isContended: false }

/**
 * One per definition, in their order.
 * @throws {HostError} `CANCELLED` on abort.
 */
export async function observeDefinitions(
  definitions: readonly ServerDefinition[],
  settings: SetSettings,
  signal: AbortSignal | undefined,
): Promise<Observed[]> {
  const { credentials } = settings
  const readings =
    credentials === undefined
      ? undefined
      : await untilAborted(Promise.all(definitions.map((one) => readCredentials(one, settings, credentials))), signal)
  return definitions.map((definition, index) => observed(definition, readings?.[index] ?? NO_CREDENTIALS, settings))
}

function observed(definition: ServerDefinition, credentials: CredentialReading, settings: SetSettings): Observed {
  const { protocol, environments, account, start } = settings
  const environment = resolveEnvironment(definition, environments)
  const identity = connectionIdentity(definition, {
    env: protocol.platform.env,
    environment: placeOf(environment),
    ...accountOf(account?.(definition)),
    credentials: credentials.snapshot,
    isContended: credentials.isContended,
    client: protocol.capabilities,
  })
  const desired = desiredConnection(definition, { identity, hasVisibleCachedTools: false }, start)
  return { desired, environment, credentials }
}

function accountOf(account: object | undefined): { readonly account?: object } {
  return account === undefined ? {} : { account }
}

function placeOf(resolved: ResolvedEnvironment): object | string {
  switch (resolved.kind) {
    case 'found':
      return resolved.environment
    case 'not-needed':
      return ''
    case 'missing':
      return resolved.error.message
  }
}

async function readCredentials(
  definition: ServerDefinition,
  { protocol }: SetSettings,
  credentials: NonNullable<SetSettings['credentials']>,
): Promise<CredentialReading> {
  if (definition.transport.kind !== 'http') return NO_CREDENTIALS
  const abort = new AbortController()
  const timer = protocol.platform.setTimer(() => abort.abort(), CREDENTIALS_MS_MAX)
  try {
    return await untilAborted(credentials.read(definition, { signal: abort.signal }), abort.signal)
  } catch {
    return UNREADABLE
  } finally {
    protocol.platform.clearTimer(timer)
  }
}
