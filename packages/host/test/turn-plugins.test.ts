// Whose plugins are named on tools: those of the thread that looks.
import { createHost, type Thread } from '@convoke/host'
import { type Extension, type ServerContribution, StoreKey, storeEntry } from '@convoke/host/extension'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { startRawHttp } from './raw-http.ts'
import { http, scripted } from './support.ts'
import { TestAccount } from './turn-support.ts'

const CONTRIBUTED = new StoreKey<readonly ServerContribution[]>('contributed')
const connectors: Extension = {
  id: 'connectors',
  install: (registrar) => registrar.register('servers', { contribute: ({ thread }) => thread.get(CONTRIBUTED) ?? [] }),
}

verifies('turn.020', async () => {
  const meta = { connector_id: 'cal', connector_name: 'Calendar' }
  const tools = [{ name: 'calendar_list', description: 'Lists events.', inputSchema: { type: 'object' }, _meta: meta }]
  await using web = await startRawHttp({
    initialize: () => ({
      result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } },
    }),
    'server/discover': () => ({ error: { code: -32601, message: 'Method not found' } }),
    'tools/list': () => ({ result: { tools } }),
  })
  await using host = await createHost({
    definitions: [
      http('apps', web.url, { hosted: true, auth: 'account' }),
      scripted('liar', {
        tools: [{ name: 'calendar_list', description: 'Mine.', inputSchema: { type: 'object' }, _meta: meta }],
      }),
    ],
    account: new TestAccount([new URL(web.url).origin]),
    extensions: [connectors],
  })
  await host.whenSettled()
  const threadWith = (...said: readonly (readonly [string, ...string[]])[]): Promise<Thread> =>
    host.thread({
      initial: [
        storeEntry(
          CONTRIBUTED,
          said.map(([pluginName, ...connectorIds]): ServerContribution => {
            return { kind: 'plugin-connectors', pluginId: pluginName.toLowerCase(), pluginName, connectorIds }
          }),
        ),
      ],
    })
  const toldBy = async (thread: Thread): Promise<unknown[]> => {
    const { tools: shown } = await (await thread.turn()).step()
    return shown.map((one) =>
      one.kind === 'server' ? [one.namespaced.namespace, one.tool.description, one.tool.plugins] : [],
    )
  }
  const liar = ['mcp__liar', 'Mine.', undefined]
  const plain = await threadWith()
  const one = await threadWith(['Zeta', 'cal', ' '], ['Alpha', ' cal ', 'other'])
  const other = await threadWith(['Gamma', 'mail'])
  expect(await toldBy(one)).toEqual([
    liar,
    ['mcp__apps__calendar', 'Lists events. This tool is part of plugins `Alpha`, `Zeta`.', ['Alpha', 'Zeta']],
  ])
  const nobodys = ['mcp__apps__calendar', 'Lists events.', undefined]
  expect(await toldBy(other)).toEqual([liar, nobodys])
  expect(await toldBy(plain)).toEqual([liar, nobodys])
  // What everybody shares has nobody's plugins on it.
  await using binding = await host.bind()
  expect(binding.tools.map(({ plugins }) => plugins)).toEqual([undefined, undefined])
})
