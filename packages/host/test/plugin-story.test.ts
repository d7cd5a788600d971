// The long life of hosted plugins in one thread, through a whole host and a real apps server: two accounts, real turns and steps, a scripted provider.
import { createHost, type Host, type Step } from '@convoke/host'
import type { SelectedPluginSnapshot } from '@convoke/host/extension'
import { type AppsServer, startAppsServer } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type PluginCatalog, pluginsExtension } from '../src/plugins/index.ts'
import { complete, entry, partial, ScriptedProvider } from './plugin-support.ts'
import { http } from './support.ts'
import { TestAccount } from './turn-support.ts'

const REMOTE = entry('remote', { displayName: 'Cloud Demo', connectorIds: ['calendar'] })
const GMAIL = entry('gmail', { displayName: 'Gmail Demo', connectorIds: ['gmail'] })
const warned = (catalog: PluginCatalog): PluginCatalog => ({ ...catalog, warnings: ['listing truncated'] })

/** A thread whose turns call the tool of the account that is signed in. */
class Story {
  readonly apps: AppsServer
  readonly host: Host
  readonly account: TestAccount
  readonly provider: ScriptedProvider
  /** What a contributor of context saw last. */
  readonly seen: { plugins?: SelectedPluginSnapshot } = {}

  private constructor(parts: Pick<Story, 'apps' | 'host' | 'account' | 'provider' | 'seen'>) {
    this.apps = parts.apps
    this.host = parts.host
    this.account = parts.account
    this.provider = parts.provider
    this.seen = parts.seen
  }

  static async begin(): Promise<Story> {
    const apps = await startAppsServer({
      accounts: {
        a: { tools: [{ connector: 'calendar', action: 'list_events', connectorName: 'Calendar' }] },
        b: { tools: [{ connector: 'gmail', action: 'search', connectorName: 'Gmail' }] },
      },
    })
    const account = new TestAccount([apps.origin], 'a')
    const provider = new ScriptedProvider()
    const seen: Story['seen'] = {}
    const host = await createHost({
      definitions: [http('apps', apps.url, { hosted: true, auth: 'account', approvalMode: 'approve' })],
      account,
      extensions: [
        pluginsExtension({ provider }),
        {
          id: 'observer',
          install: (registrar) =>
            registrar.register('context', {
              worldState: ({ plugins }) => {
                seen.plugins = plugins
                return []
              },
            }),
        },
      ],
    })
    await host.whenSettled()
    return new Story({ apps, host, account, provider, seen })
  }

  /** The plugins that a step shows, none of which has files here. */
  get visible(): readonly string[] {
    expect(this.seen.plugins?.plugins.filter(({ rootId }) => rootId !== undefined)).toEqual([])
    return this.seen.plugins?.plugins.map(({ pluginId }) => pluginId) ?? []
  }

  /** What the model is shown of the tools, by their namespaced names. */
  shownBy(step: Step): Readonly<Record<string, string>> {
    return Object.fromEntries(
      step.tools.map((one) =>
        one.kind === 'server'
          ? [`${one.namespaced.namespace} ${one.namespaced.tool}`, one.tool.description ?? '']
          : [one.name, ''],
      ),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.host.close()
    await this.apps.close()
  }
}

const CALENDAR = 'mcp__apps__calendar _list_events'
const MAIL = 'mcp__apps__gmail _search'

test('hosted plugins come, go, fail and change with the account, turn by turn', async () => {
  await using story = await Story.begin()
  const { host, provider, apps } = story
  const thread = await host.thread()
  let toolCalls = 0

  /** One turn of two model calls: the tool is called in the first, and its answer is what the second is told. */
  const turn = async (
    row: string,
    reply: PluginCatalog | Error,
    expected: { visible: readonly string[]; named?: string; isB?: boolean; calls?: number },
  ): Promise<void> => {
    const { visible, named, isB = false, calls = 1 } = expected
    const before = provider.calls
    provider.reply = reply
    const running = await thread.turn({ requiredServers: ['apps'] })
    const step = await running.step()
    const shown = story.shownBy(step)
    expect(Object.keys(shown), row).toEqual([isB ? MAIL : CALENDAR])
    const text = shown[isB ? MAIL : CALENDAR] ?? ''
    if (named === undefined) expect(text, row).not.toContain('plugin')
    else expect(text, row).toContain(`\`${named}\``)
    expect(story.visible, row).toEqual(visible)
    const [tool] = step.tools
    if (tool === undefined) throw new Error(`${row}: no tool`)
    const outcome = await step.call(tool, { query: row }, { callId: `call-${row}` })
    toolCalls += 1
    const stats = await apps.stats()
    expect(stats.calls, row).toHaveLength(toolCalls)
    const { name, connector } = isB
      ? { name: 'gmail_search', connector: 'gmail' }
      : { name: 'calendar_list_events', connector: 'calendar' }
    expect(stats.calls.at(-1), row).toMatchObject({ account: isB ? 'b' : 'a', name, arguments: { query: row } })
    expect(JSON.stringify(outcome), row).toContain(`connector://${connector}/tools/${name}`)
    expect(JSON.stringify(stats.calls.at(-1)?.meta), row).toContain(`call-${row}`)
    await running.step()
    expect(story.visible, row).toEqual(visible)
    await running.complete()
    expect(provider.calls - before, row).toBe(calls)
  }

  await turn('initial-partial', partial(GMAIL), { visible: ['gmail'] })
  await turn('partial-replaces-partial', partial(REMOTE), { visible: ['remote'], named: 'Cloud Demo' })
  await turn('partial-empty-replaces-partial', warned(partial()), { visible: [] })
  await turn('empty', complete(), { visible: [] })
  await turn('partial-after-complete-empty', partial(GMAIL), { visible: [] })
  await turn('discovered', complete(REMOTE), { visible: ['remote'], named: 'Cloud Demo' })
  await turn('partial-refresh', partial(GMAIL), { visible: ['remote'], named: 'Cloud Demo' })
  await turn('partial-empty-refresh', warned(partial()), { visible: [] })
  await turn('same-account-failure', new Error('down'), { visible: [] })
  // Another connection ends the pause after a failure.
  const reconnected = async (): Promise<void> => {
    const key = host.resources.connectionKey('apps')
    thread.refreshServers()
    await expect.poll(() => host.resources.connectionKey('apps')).not.toBe(key)
  }
  await reconnected()
  const off = { ...REMOTE, enabled: false }
  await turn('complete-with-warning-disables-plugin', warned(complete(off)), { visible: [] })
  await turn('partial-after-disable', partial(GMAIL), { visible: [] })
  await turn('re-enabled', complete(REMOTE), { visible: ['remote'], named: 'Cloud Demo' })
  await turn('removed', complete(), { visible: [] })
  await turn('restored', complete(REMOTE), { visible: ['remote'], named: 'Cloud Demo' })

  // Somebody else signs in: what the old account had is gone before the next turn, and nobody has been asked.
  const scope = host.resources.authScopeKey('apps')
  const asked = provider.calls
  story.account.signIn('b')
  await expect.poll(() => host.resources.authScopeKey('apps')).not.toBe(scope)
  await expect.poll(() => thread.plugins.plugins).toEqual([])
  expect(provider.calls).toBe(asked)
  await turn('auth-changed-failure', new Error('down'), { visible: [], isB: true })
  await reconnected()
  await turn('new-account-partial', partial(GMAIL), { visible: ['gmail'], named: 'Gmail Demo', isB: true })
  await turn('new-account-discovered', complete(GMAIL), { visible: ['gmail'], named: 'Gmail Demo', isB: true })

  // A sign-in while the provider is asked: the late answer is refused, and the step asks once more.
  const before = provider.calls
  const listing = provider.pause()
  provider.reply = complete(REMOTE)
  const beginning = thread.turn({ requiredServers: ['apps'] })
  await listing
  const key = host.resources.authScopeKey('apps')
  story.account.signIn('b')
  await expect.poll(() => host.resources.authScopeKey('apps')).not.toBe(key)
  await expect.poll(() => thread.plugins.plugins).toEqual([])
  provider.reply = new Error('down')
  provider.resume()
  const running = await beginning
  const step = await running.step()
  expect(provider.calls - before).toBe(2)
  expect(story.visible).toEqual([])
  expect(Object.values(story.shownBy(step)).join()).not.toContain('plugin')
  await running.complete()
  expect(host.extensionCounts).toMatchObject({ 'plugins.calls': provider.calls })
})

test('two threads share neither lock nor pause', async () => {
  await using story = await Story.begin()
  const { host, provider } = story
  const [one, two] = [await host.thread(), await host.thread()]
  const listing = provider.pause()
  const waiting = one.turn()
  await listing
  provider.reply = new Error('down')
  await (await two.turn()).complete()
  expect(provider.calls).toBe(2)
  provider.resume()
  await (await waiting).complete()
  // The second one pauses now, the first one does not.
  provider.reply = complete(REMOTE)
  await (await two.turn()).complete()
  expect(provider.calls).toBe(2)
  await (await one.turn()).complete()
  expect(provider.calls).toBe(3)
  await (await one.turn()).step()
  expect([one.plugins.plugins, two.plugins.plugins]).toEqual([[{ pluginId: 'remote' }], []])
})
