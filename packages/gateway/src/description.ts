// How the gateway presents itself.
import { cleanText, type JsonObject } from '@convoke/host'
import type { ServerDescription } from '@convoke/wire/server'
import { LIST_TTL_MS } from './lists.ts'
import type { View } from './view.ts'

const INSTRUCTIONS_CHARS_MAX = 4_096
const WHOLE_CHARS_MAX = 16_384

const CAPABILITIES: JsonObject = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
}

/** The same for every client; whose instructions are quoted depends on who is ready. */
export function describe(view: View, serverInfo: JsonObject): ServerDescription {
  const instructions = instructionsOf(view)
  return {
    serverInfo,
    capabilities: CAPABILITIES,
    ttlMs: LIST_TTL_MS,
    ...(instructions === '' ? {} : { instructions }),
  }
}

/** What servers say of themselves is quoted under their names: it is theirs, not ours. */
function instructionsOf(view: View): string {
  const quoted = view.binding.statuses.flatMap(({ name }) => {
    const text = cleanText((view.port(name)?.instructions ?? '').slice(0, INSTRUCTIONS_CHARS_MAX)).text.trim()
    return text === '' ? [] : [`Server "${name}" says of itself:\n${text.replace(/^/gm, '> ')}`]
  })
  if (quoted.length === 0) return ''
  return ['Tools and prompts are named SERVER__NAME.', ...quoted].join('\n\n').slice(0, WHOLE_CHARS_MAX)
}
