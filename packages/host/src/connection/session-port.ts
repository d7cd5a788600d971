import type { ServerSession } from '../protocol/index.ts'
import type { ServerPort } from './port.ts'

/** The port of one session. It stays with that session: when the session ends, every later request fails. */
export function sessionPort(session: ServerSession): ServerPort {
  return {
    name: session.server,
    get era() {
      return session.era
    },
    get capabilities() {
      return session.capabilities
    },
    get serverInfo() {
      return session.serverInfo
    },
    get instructions() {
      return session.instructions
    },
    request: (method, params, options) => session.request(method, params, options),
    requestRaw: (method, params, options) => session.requestRaw(method, params, options),
    notify: (method, params) => session.notify(method, params),
    subscribe: (filter, options) => session.subscribe(filter, options),
  }
}
