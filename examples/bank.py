"""Two transfers that take two locks in opposite orders: most runs end, and some do not.

licorne lockcheck run examples/bank.py
licorne lockcheck confirm examples/bank.py
"""

import threading


class Account:
    """An account with a lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.balance = 100


def transfer(source: Account, target: Account, amount: int) -> None:
    """Move an amount, holding both locks: the order is that of the arguments."""
    with source.lock, target.lock:
        source.balance -= amount
        target.balance += amount


savings, wallet = Account(), Account()
threads = [
    threading.Thread(target=transfer, args=(source, target, 10))
    for source, target in ((savings, wallet), (wallet, savings))
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(savings.balance, wallet.balance)
