// Our wire alone, built. It keeps no catalog: asked again, it asks the servers again.
import { Session } from '@convoke/wire'
import { openPerServer } from './per-server.mjs'

export const makeWire = (client) => async (spec) => {
  const target =
    spec.url === undefined
      ? { kind: 'stdio', command: spec.command, args: spec.args, env: spec.env }
      : { kind: 'http', url: spec.url, client }
  const session = await Session.connect({ target })
  return {
    list: async () => (await session.list('tools', { itemsMax: 100_000 })).items.length,
    call: async (tool, args) => (await session.callTool(tool, args)).content[0].text,
    close: () => session.close(),
  }
}

export const open = (servers, marks) => openPerServer(servers, marks, makeWire('node'))
