// `initialize`: which version is spoken, and what the client is told of the server. Pure but for the application.
import type { JsonObject } from '../protocol.ts'
import { isObject } from '../validate.ts'
import type { Application } from './application.ts'
import type { LegacyClient, SessionInit } from './legacy-session.ts'
import { SERVED_LEGACY_VERSIONS } from './rules.ts'

/** What the client says of itself. The newest version is offered to one that asks for a stranger. */
export function readInitialize(params: JsonObject): Pick<SessionInit, 'version' | 'capabilities' | 'info'> {
  const { protocolVersion, capabilities, clientInfo } = params
  const known = typeof protocolVersion === 'string' && SERVED_LEGACY_VERSIONS.includes(protocolVersion)
  return {
    version: known ? protocolVersion : (SERVED_LEGACY_VERSIONS[0] as string),
    capabilities: isObject(capabilities) ? capabilities : {},
    info: isObject(clientInfo) ? clientInfo : {},
  }
}

/** The answer to `initialize`. Rejects as `describe` does. */
export async function initializeResult(application: Application, client: LegacyClient): Promise<JsonObject> {
  const { serverInfo, capabilities, instructions } = await application.describe(client)
  return {
    protocolVersion: client.version,
    capabilities,
    serverInfo,
    ...(instructions === undefined ? {} : { instructions }),
  }
}
