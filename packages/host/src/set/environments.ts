// Where servers run. `local` is this machine unless the host says otherwise; every other environment is given by the host.
import { HostError } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { Platform } from '../protocol/index.ts'

/** A place where the processes of servers run. Compared by identity: another object is another place, even under the same name. */
export interface Environment {
  /** Starts processes, and is where their files are. */
  readonly platform: Platform
}

/** The environments of one host by the name that definitions use. */
export type Environments = ReadonlyMap<string, Environment>

const locals = new WeakMap<Platform, Environment>()

/** This machine: the same place for every host of a process. */
export function localEnvironment(platform: Platform): Environment {
  const known = locals.get(platform)
  if (known !== undefined) return known
  const environment = { platform }
  locals.set(platform, environment)
  return environment
}

/** Where a server runs, or why it cannot. */
export type ResolvedEnvironment =
  | { readonly kind: 'found'; readonly environment: Environment }
  /** An HTTP server needs no place to run. */
  | { readonly kind: 'not-needed' }
  | { readonly kind: 'missing'; readonly error: HostError }

/** Pure. */
export function resolveEnvironment(
  { name, environment, transport }: ServerDefinition,
  environments: Environments,
): ResolvedEnvironment {
  const found = environments.get(environment)
  if (found !== undefined) return { kind: 'found', environment: found }
  if (environment === 'local' && transport.kind === 'http') return { kind: 'not-needed' }
  const message =
    environment === 'local'
      ? `Server "${name}" is a process of this machine, and this host has no local environment. Give it an environment, or a URL`
      : `Server "${name}" belongs to the environment "${environment}", which this host does not have`
  return {
    kind: 'missing',
    error: new HostError('ENVIRONMENT_UNAVAILABLE', message, { details: { server: name, environment } }),
  }
}
