// Who takes part in what: made once by a builder, never changed afterwards, and the same for all threads.
import type { ContributorKind, ContributorKinds } from './contributors.ts'

/** A contributor and the extension that it belongs to. */
export interface Registered<Contributor> {
  /** Id of the extension; named in events. */
  readonly extension: string
  readonly contributor: Contributor
}

/** Something that takes part in threads, turns and tools. */
export interface Extension {
  /** Charset `[a-z0-9._/-]`, at most 64 characters. */
  readonly id: string
  /** Registers its contributors. The same object may be registered for several kinds. */
  install(registrar: Registrar): void
}

/** Where one extension registers. */
export interface Registrar {
  /** Each kind keeps the order of registration, over all extensions. */
  register<Kind extends ContributorKind>(kind: Kind, contributor: ContributorKinds[Kind]): void
}

type Lists = { [Kind in ContributorKind]: Registered<ContributorKinds[Kind]>[] }

/** Most extensions of one host. */
export const EXTENSIONS_MAX = 256

/** The contributors of a host, by kind. Immutable. */
export class ExtensionRegistry {
  readonly #lists: Readonly<Lists>

  private constructor(lists: Lists) {
    this.#lists = lists
  }

  /**
   * Lets extensions register, in their order.
   * @throws {RangeError} for two extensions of one id, a malformed id, or more than 256 of them; and whatever `install` throws.
   */
  static of(extensions: readonly Extension[]): ExtensionRegistry {
    if (extensions.length > EXTENSIONS_MAX) throw new RangeError(`More than ${EXTENSIONS_MAX} extensions`)
    const lists = emptyLists()
    const ids = new Set<string>()
    for (const { id } of extensions) {
      if (!/^[a-z0-9][a-z0-9._/-]{0,63}$/.test(id)) throw new RangeError(`"${id}" is no id of an extension`)
      if (ids.has(id)) throw new RangeError(`Two extensions have the id "${id}"`)
      ids.add(id)
    }
    for (const extension of extensions) installInto(lists, extension)
    return new ExtensionRegistry(lists)
  }

  /** In the order of registration. */
  all<Kind extends ContributorKind>(kind: Kind): readonly Registered<ContributorKinds[Kind]>[] {
    return this.#lists[kind]
  }
}

function installInto(lists: Lists, extension: Extension): void {
  let isOpen = true
  extension.install({
    register(kind, contributor) {
      if (!isOpen) throw new RangeError(`Extension "${extension.id}" registers after its installation`)
      lists[kind].push({ extension: extension.id, contributor })
    },
  })
  isOpen = false
}

function emptyLists(): Lists {
  return {
    threadLifecycle: [],
    turnLifecycle: [],
    configuration: [],
    context: [],
    servers: [],
    turnInput: [],
    tools: [],
    toolLifecycle: [],
    approvalReview: [],
    tokenUsage: [],
  }
}
