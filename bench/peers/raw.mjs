import { RawHttp, RawStdio } from '../floor/raw-client.mjs'
import { openPerServer } from './per-server.mjs'

export const makeRaw = (Stdio) => async (spec) => {
  const client = spec.url === undefined ? new Stdio(spec) : new RawHttp(spec)
  await client.connect()
  return {
    list: async () => (await client.listTools()).length,
    call: async (tool, args) => (await client.callTool(tool, args)).content[0].text,
    close: () => client.close(),
  }
}

export const open = (servers, marks) => openPerServer(servers, marks, makeRaw(RawStdio))
