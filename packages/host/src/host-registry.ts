// Which servers a host has, when others than its configuration have a say. Part of the composition root.
import { HostError } from './base/index.ts'
import {
  type RegistrationAction,
  type RegistrationAuthority,
  type RegistrationCatalog,
  type ResolvedRegistration,
  resolveRegistrations,
  type ServerDefinition,
} from './config/index.ts'

/** What the servers of a host are made of. */
export interface HostConfiguration {
  /** Those of the configuration. */
  readonly definitions: readonly ServerDefinition[]
  /** What plugins, older settings and extensions declare or remove, in the order in which it was said. Default none. */
  readonly registrations?: readonly RegistrationAction[]
  /** What environments allow, and names that nobody may use. Default: everything. */
  readonly authority?: RegistrationAuthority
}

/** A configuration with every name resolved. */
export interface ResolvedConfiguration {
  readonly configuration: HostConfiguration
  readonly definitions: readonly ServerDefinition[]
  /** Undefined where only the configuration has a say. */
  readonly catalog: RegistrationCatalog | undefined
  /** What threads contribute. */
  readonly contributed: readonly RegistrationAction[]
}

/** The resolved configuration that is published. */
export class HostRegistry {
  #current: ResolvedConfiguration

  constructor(first: HostConfiguration) {
    this.#current = this.resolve(first)
  }

  get current(): ResolvedConfiguration {
    return this.#current
  }

  /**
   * What is left out stays as it is published.
   * @param contributed What threads contribute. Default: what is published of it.
   * @throws {HostError} `OPTIONS_INVALID` for two definitions of one name.
   */
  resolve(
    next: HostConfiguration,
    contributed: readonly RegistrationAction[] = this.#current?.contributed ?? [],
  ): ResolvedConfiguration {
    const { definitions } = next
    checkNames(definitions)
    const before = this.#current?.configuration
    const registrations = next.registrations ?? before?.registrations ?? []
    const authority = next.authority ?? before?.authority
    const configuration = { definitions, registrations, ...(authority === undefined ? {} : { authority }) }
    if (registrations.length === 0 && contributed.length === 0 && authority === undefined)
      return { configuration, definitions, catalog: undefined, contributed }
    const actions: RegistrationAction[] = [
      ...registrations,
      ...contributed,
      ...definitions.map((definition) => ({
        kind: 'declare' as const,
        source: { kind: 'config' as const },
        definition,
      })),
    ]
    const catalog = resolveRegistrations(actions, authority)
    return { configuration, definitions: catalog.definitions, catalog, contributed }
  }

  /** It is what is published now. */
  use(resolved: ResolvedConfiguration): void {
    this.#current = resolved
  }

  /** What became of a name; undefined where only the configuration has a say. */
  registration(name: string): ResolvedRegistration | undefined {
    return this.#current.catalog?.registrations.find((one) => one.name === name)
  }
}

/** @throws {HostError} `OPTIONS_INVALID` */
function checkNames(definitions: readonly ServerDefinition[]): void {
  const names = new Set<string>()
  for (const { name } of definitions) {
    if (names.has(name)) throw new HostError('OPTIONS_INVALID', `Two definitions have the name "${name}"`)
    names.add(name)
  }
}
