// What an environment allows to run in it. Pure.
import type { ServerDefinition } from './definition.ts'
import type { RegistrationSource } from './registration-source.ts'

/** A server that a policy allows: this name and, where they are given, exactly this command or address. */
export interface ServerRequirement {
  readonly name: string
  readonly command?: string
  readonly url?: string
}

/** What one environment allows. */
export type EnvironmentAuthority =
  | { readonly kind: 'unrestricted' }
  | {
      readonly kind: 'restricted'
      /** The only servers, those of plugins apart. Absent: all. Empty: none, and none of plugins either. */
      readonly servers?: readonly ServerRequirement[]
      /** The only plugins by id, each with its servers. Absent: all. */
      readonly plugins?: Readonly<Record<string, readonly ServerRequirement[]>>
    }
  | { readonly kind: 'selected-plugins-only' }
  /** It is not there: nothing runs in it. */
  | { readonly kind: 'unavailable' }

/** Everything that can switch off a registration from outside. */
export interface RegistrationAuthority {
  /** By environment id. An environment that is not here is unrestricted. */
  readonly environments?: Readonly<Record<string, EnvironmentAuthority>>
  /** Names whose server is not to run, whoever declares it. */
  readonly vetoes?: ReadonlySet<string>
}

/** Does its environment allow it? Hosted servers run nowhere but with their account: no environment speaks for them. */
export function isAllowed(
  definition: ServerDefinition,
  source: RegistrationSource,
  { environments = {} }: RegistrationAuthority,
): boolean {
  if (definition.hosted) return true
  const authority = Object.hasOwn(environments, definition.environment)
    ? environments[definition.environment]
    : undefined
  if (authority === undefined) return true
  switch (authority.kind) {
    case 'unrestricted':
      return true
    case 'unavailable':
      return false
    case 'selected-plugins-only':
      return source.kind === 'selected-plugin'
    case 'restricted':
      return source.kind === 'selected-plugin' || source.kind === 'discovered-plugin'
        ? allowsPlugin(authority, source.plugin, definition)
        : authority.servers === undefined || authority.servers.some((one) => matches(one, definition))
  }
}

function allowsPlugin(
  { servers, plugins }: Extract<EnvironmentAuthority, { kind: 'restricted' }>,
  plugin: string,
  definition: ServerDefinition,
): boolean {
  if (servers !== undefined && servers.length === 0) return false
  if (plugins === undefined) return true
  return Object.hasOwn(plugins, plugin) && plugins[plugin]?.some((one) => matches(one, definition)) === true
}

function matches({ name, command, url }: ServerRequirement, { name: own, transport }: ServerDefinition): boolean {
  if (name !== own) return false
  if (command !== undefined && (transport.kind !== 'stdio' || transport.command !== command)) return false
  return url === undefined || (transport.kind === 'http' && transport.url === url)
}
