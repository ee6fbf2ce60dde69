// Tethers: local ports that lead to workloads.
import type { Tether } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { changeCloud, tetherList, workloadPages } from '../state/cloud_data.ts';
import { client } from '../state/session.ts';

const BYTES = ['B', 'kB', 'MB', 'GB'];

function bytesText(bytes: number): string {
  const unit = Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${BYTES[unit]}`;
}

/** The local address of a tether and the port that it leads to; '' without an address. */
export const tetherAddress = ({ local_port: local, container_port: port }: Tether): string =>
  local === null ? '' : `localhost:${local} → ${port}`;

function TetherRow({ tether }: { tether: Tether }) {
  const { tether_id: id, workload_id: of, container_port: port, state, label } = tether;
  const workload = tether.workload ?? workloadPages.rows.value.find((one) => one.id === of);
  const name = label ?? `${workload?.name ?? of}:${port}`;
  const error = visibleLine(tether.last_error ?? '');
  const action = state === 'active' ? 'deactivate' : 'activate';
  return (
    <div class="table-row tether-row" data-name={name}>
      <StateLabel state={state} />
      <span class="cell-name" title={name}>
        {visibleLine(name)}
      </span>
      <span class="number tether-address">{tetherAddress(tether)}</span>
      <span class="number soft cell-figure">{tether.connections}</span>
      <span class="number soft cell-figure">{bytesText(tether.bytes_in)}</span>
      <span class="number soft cell-figure">{bytesText(tether.bytes_out)}</span>
      <span class="tether-error" title={error}>
        {error}
      </span>
      <Button
        text={action}
        label={`${action} ${name}`}
        onPress={() => void changeCloud(`${action} ${name}`, () => client.cloud[action](id))}
      />
    </div>
  );
}

/** The tethers: the local address and the traffic of each. */
export function TetherSection() {
  return (
    <section aria-label="tethers" class="tethers">
      {tetherList.value.length > 0 && (
        <div class="table-row table-head tether-row">
          <span>State</span>
          <span>Tether</span>
          <span class="tether-address">Local address</span>
          <span class="cell-figure">Connections</span>
          <span class="cell-figure">In</span>
          <span class="cell-figure">Out</span>
          <span class="tether-error">Last error</span>
          <span />
        </div>
      )}
      {tetherList.value.map((tether) => (
        <TetherRow key={tether.tether_id} tether={tether} />
      ))}
      {tetherList.value.length === 0 && (
        <p class="empty soft">
          No tether. <code>berth k8s tether web 8080</code> opens a local port to a workload.
        </p>
      )}
    </section>
  );
}
