// Resources, templates and prompts of all servers, listed when somebody asks and kept for a moment.
import {
  type Aggregate,
  type CatalogPrompt,
  type CatalogResource,
  type CatalogResourceTemplate,
  cleanLine,
} from '@convoke/host'
import type { Reply } from '@convoke/wire/server'
import { type PreparedList, prepareItems } from './lists.ts'
import type { View } from './view.ts'

/** Kinds of lists, by the method that asks for them. */
export const OFFER_METHODS = {
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
  'prompts/list': 'prompts',
} as const

/** A method of {@link OFFER_METHODS}. */
export type OfferMethod = keyof typeof OFFER_METHODS
type Kind = (typeof OFFER_METHODS)[OfferMethod]

interface Known {
  readonly view: View
  readonly askedAtMs: number
  readonly list: Promise<PreparedList>
}

const AGE_MS_MAX = 2_000
const MESSAGE_CHARS_MAX = 500

export class Offers {
  readonly #known = new Map<Kind, Known>()

  /** The list, not older than two seconds and never from before a change that was told. Rejects as the host does. */
  async list(view: View, method: OfferMethod, era: 'legacy' | 'modern'): Promise<Reply> {
    const kind = OFFER_METHODS[method]
    const nowMs = performance.now()
    let known = this.#known.get(kind)
    if (known === undefined || known.view !== view || nowMs - known.askedAtMs > AGE_MS_MAX) {
      known = { view, askedAtMs: nowMs, list: prepare(view, kind) }
      this.#known.set(kind, known)
      const mine = known
      mine.list.catch(() => {
        if (this.#known.get(kind) === mine) this.#known.delete(kind)
      })
    }
    return (await known.list)[era]
  }

  /** Asks anew next time. */
  forget(): void {
    this.#known.clear()
  }
}

/** Servers that may have something to list and cannot be asked: nobody is lost silently. */
function absent({ binding }: View): Aggregate<never>['failures'] {
  return binding.statuses
    .filter(({ state }) => state !== 'ready' && state !== 'dormant' && state !== 'disabled')
    .map(({ name: server, state, reason }) => ({
      server,
      code: reason?.code ?? 'SERVER_NOT_READY',
      message: cleanLine(reason?.message ?? `Server "${server}" is ${state}`, MESSAGE_CHARS_MAX),
    }))
}

async function prepare(view: View, kind: Kind): Promise<PreparedList> {
  const { binding } = view
  const missing = absent(view)
  if (kind === 'prompts') {
    const { items, failures }: Aggregate<CatalogPrompt> = await binding.prompts()
    return prepareItems('prompts', items, [...failures, ...missing])
  }
  const { items, failures }: Aggregate<CatalogResource | CatalogResourceTemplate> =
    kind === 'resources' ? await binding.resources() : await binding.resourceTemplates()
  // A resource has a URI for a name; the name that people read stays the server's.
  return prepareItems(
    kind,
    items.map(({ definition, server }) => ({ definition, server })),
    [...failures, ...missing],
  )
}
