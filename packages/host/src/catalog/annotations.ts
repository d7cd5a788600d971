// What a kept tool may still say about itself. Hints count for approvals and for parallel calls: one from yesterday must not. Pure.
import { isObject, type JsonObject } from '../base/index.ts'
import type { ListedTool, ToolListing } from './listing.ts'

const plain = new WeakMap<ToolListing, ToolListing>()
const cautious = new WeakMap<ToolListing, ToolListing>()

/** The listing without any annotation; the same object when there are none. Made once per listing. */
export function withoutAnnotations(listing: ToolListing): ToolListing {
  return once(plain, listing, (annotations) => (annotations === undefined ? undefined : null))
}

/** The listing without the hint that a tool only reads; what makes a tool more dangerous stays. Made once per listing. */
export function withoutReadOnlyHint(listing: ToolListing): ToolListing {
  return once(cautious, listing, (annotations) => {
    if (!isObject(annotations) || annotations['readOnlyHint'] === undefined) return undefined
    const { readOnlyHint: _, ...rest } = annotations
    return rest
  })
}

/** What becomes of annotations: `undefined` leaves the tool as it is, `null` takes them away. */
type Rule = (annotations: unknown) => JsonObject | null | undefined

function once(made: WeakMap<ToolListing, ToolListing>, listing: ToolListing, rule: Rule): ToolListing {
  const known = made.get(listing)
  if (known !== undefined) return known
  const tools = listing.tools.map((tool) => changed(tool, rule))
  const isSame = tools.every((tool, index) => tool === listing.tools[index])
  const result = isSame ? listing : listing.with(tools)
  made.set(listing, result)
  return result
}

function changed(tool: ListedTool, rule: Rule): ListedTool {
  const kept = rule(tool.definition['annotations'])
  if (kept === undefined) return tool
  const { annotations: _, ...rest } = tool.definition
  // The title may have stood in the annotations only; it says nothing about harm.
  const title = tool.title === undefined || rest['title'] !== undefined ? {} : { title: tool.title }
  return { ...tool, definition: { ...rest, ...title, ...(kept === null ? {} : { annotations: kept }) } }
}
