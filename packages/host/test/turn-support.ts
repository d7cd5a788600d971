// What the tests of threads and turns share.
import {
  type Account,
  type AccountChange,
  type AccountSource,
  createHost,
  type Host,
  type HostEvent,
  type HostOptions,
  type ServerDefinition,
  type Step,
  type StepTool,
} from '@convoke/host'
import type { ContributorKind, ContributorKinds, Extension } from '@convoke/host/extension'

/** Something that opens when a test says so. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** The tool of a step that a text names. */
export function stepTool(step: Step, text: string): StepTool {
  const resolution = step.binding.resolveTool(text)
  const tool = resolution.kind === 'found' ? step.find(resolution.tool.name) : undefined
  if (tool === undefined) throw new Error(`${text} is not there`)
  return tool
}

/** An account that a test signs in. */
export class TestAccount implements AccountSource {
  readonly origins: readonly string[]
  #account: Account
  readonly #listeners = new Set<(change: AccountChange) => void>()

  /** @param origins That may see the token, which is `token-` and the id. */
  constructor(origins: readonly string[] = [], id = 'a') {
    this.origins = origins
    this.#account = { id, grant: `grant-${id}` }
  }
  current(): Account {
    return this.#account
  }
  token(account: Account): string | undefined {
    return account === this.#account ? `token-${account.id}` : undefined
  }
  refresh(): Promise<boolean> {
    return Promise.resolve(false)
  }
  onChange(listener: (change: AccountChange) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  /** Somebody signs in, perhaps the same person again. */
  signIn(id: string): void {
    this.#account = { id, grant: `grant-${id}-${Math.random()}` }
    for (const listener of this.#listeners) listener('replaced')
  }
}

/** Contributors by their kinds. */
export type Some = { readonly [Kind in ContributorKind]?: ContributorKinds[Kind] }

/** An extension of these contributors. */
export function extension(contributors: Some, id = 'test'): Extension {
  return {
    id,
    install(registrar) {
      for (const [kind, contributor] of Object.entries(contributors))
        registrar.register(kind as ContributorKind, contributor as never)
    },
  }
}

/** A host with these contributors, and everything that it told. */
export async function hostWith(
  definitions: readonly ServerDefinition[],
  contributors: Some | readonly Extension[],
  options: Partial<HostOptions> = {},
): Promise<{ host: Host; events: HostEvent[] }> {
  const events: HostEvent[] = []
  const host = await createHost({
    ...options,
    definitions,
    extensions: Array.isArray(contributors) ? contributors : [extension(contributors as Some)],
    onEvent: (event) => events.push(event),
  })
  return { host, events }
}
