// Facts about what is selected, as names and values.
import type { ComponentChildren } from 'preact';

/** The name of a fact and its value; false: it does not apply. */
export type Fact = readonly [name: string, value: ComponentChildren] | false;

/** The card of the facts that apply. */
export const FactCard = ({ facts }: { facts: readonly Fact[] }) => (
  <section class="card" aria-labelledby="facts-title">
    <h2 id="facts-title">Facts</h2>
    <dl class="facts">
      {facts.map((fact) =>
        fact === false ? null : (
          <div key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ),
      )}
    </dl>
  </section>
);
