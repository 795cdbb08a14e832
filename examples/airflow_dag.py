"""A DAG that waits for a person. Its workers need Airflow 3, nod-client, NOD_URL and NOD_TOKEN.

Copy it to your DAGs folder, where ``python airflow_dag.py`` tries it out; Airflow finds it nowhere else.
While it waits it holds no worker: the sensor is rescheduled, and the run's id is the key of one question.
"""

import os

from airflow.sdk import PokeReturnValue, dag, task
from airflow.sdk.exceptions import AirflowFailException

from nod_client import End, Nod, NotApproved
from nod_client.errors import approved

SECONDS = float(os.environ.get("NOD_POKE_SECONDS", "60"))


@dag(schedule=None)
def deploy() -> None:
    @task.sensor(mode="reschedule", poke_interval=SECONDS, timeout=86400)
    def ask(version: str, run_id: str = "") -> PokeReturnValue:
        with Nod() as nod:
            request = nod.open(f"Deploy {version}?", fields={"version": version}, key=f"deploy-{run_id}")
        if request.end is End.WAITING:
            return PokeReturnValue(is_done=False)
        try:
            return PokeReturnValue(is_done=True, xcom_value=dict(approved(request).fields))
        except NotApproved as error:
            raise AirflowFailException(str(error)) from error

    @task
    def release(allowed: dict[str, str]) -> None:
        print(f"releasing {allowed['version']}")

    release(ask("1.4"))


made = deploy()

if __name__ == "__main__":
    print(f"The run ended: {made.test().state}")
