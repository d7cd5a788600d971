import { cleanJson, cleanLine, type JsonObject, redactJson } from '../base/index.ts'
import type { HostEvent } from '../events/index.ts'

const LEVEL_CHARS_MAX = 32
const LOGGER_CHARS_MAX = 200
const URI_CHARS_MAX = 8_192
const DATA_CHARS_MAX = 64 * 1024

/** The event behind a notification, for those that are passed on as they come. Catalog changes are told by the catalog. */
export function logEvent(
  method: string,
  params: JsonObject,
  { server, secrets }: { readonly server: string; readonly secrets: readonly string[] },
): HostEvent | undefined {
  if (method === 'notifications/message') {
    const { level, logger, data } = params
    return {
      kind: 'server.log',
      server,
      level: typeof level === 'string' ? cleanLine(level, LEVEL_CHARS_MAX) : 'info',
      ...(typeof logger === 'string' ? { logger: cleanLine(logger, LOGGER_CHARS_MAX) } : {}),
      data: shownData(data, secrets),
    }
  }
  const { uri } = params
  return method === 'notifications/resources/updated' && typeof uri === 'string' && uri.length <= URI_CHARS_MAX
    ? { kind: 'resource.updated', server, uri }
    : undefined
}

function shownData(data: unknown, secrets: readonly string[]): unknown {
  try {
    return redactJson(cleanJson(data, { charsMax: DATA_CHARS_MAX }).value, secrets)
  } catch (error) {
    return `left out: ${(error as Error).message}`
  }
}
